# mypy: ignore-errors
import helper
from tools import area as compute_area
from tools.text import banner

print(banner("start"))
value = helper.double(4)
print("value", value)


def later():
    from tools import late

    print("late import")
    return late.answer(value)


print(compute_area(3, 4))
print(later())
helper.state["main"] = value
print(helper.describe())
for n in range(2):
    print(helper.double(n), banner(str(n)))
print(later() + 1)
print(sorted(helper.state))
print(banner("end"))
