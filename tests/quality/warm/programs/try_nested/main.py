# mypy: ignore-errors
class Problem(Exception):
    pass


def risky(n):
    if n == 1:
        raise ValueError("one")
    if n == 2:
        raise KeyError("two")
    if n == 3:
        return 1 // 0
    return n * 10


def guarded(n):
    log = []
    try:
        log.append("try")
        try:
            value = risky(n)
            log.append("ok")
        except ValueError as error:
            log.append(f"value {error}")
            raise Problem("wrapped") from error
        else:
            log.append("else")
        finally:
            log.append("inner finally")
    except Problem as error:
        cause = error.__cause__
        log.append(f"problem from {cause!r}")
        value = -1
    except (KeyError, ZeroDivisionError) as error:
        log.append(type(error).__name__)
        value = -2
    else:
        log.append("fine")
    finally:
        log.append("outer finally")
        print(n, log)
    return value


def early(n):
    for k in range(n):
        try:
            if k == 1:
                continue
            if k == 3:
                return "returned"
            print("k", k)
        finally:
            print("finally", k)
    return "through"


def again():
    try:
        risky(2)
    except KeyError:
        print("again")
        raise


results = [guarded(n) for n in range(4)]
print(results)
print(early(5), early(2))
try:
    again()
except KeyError as error:
    print("outer", error, error.__context__)
try:
    try:
        risky(1)
    except ValueError:
        risky(3)
except ZeroDivisionError as error:
    print(repr(error.__context__))
finally:
    print("last finally")
print("end")
