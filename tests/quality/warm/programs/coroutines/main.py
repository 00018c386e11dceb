# mypy: ignore-errors
class Wait:
    def __init__(self, what):
        self.what = what

    def __await__(self):
        answer = yield self.what
        return answer


class Resource:
    async def __aenter__(self):
        await Wait("open")
        return "resource"

    async def __aexit__(self, *_):
        await Wait("close")


async def ticks(limit):
    for n in range(limit):
        await Wait(f"tick {n}")
        yield n


async def worker(name):
    first = await Wait(name)
    print(name, "first", first)
    total = 0
    async for n in ticks(2):
        total += n
        print(name, "tick", n)
    async with Resource() as resource:
        print(name, "has", resource)
        second = await Wait(total)
    return first + second


async def main():
    one = await worker("one")
    print("one", one)
    two = await worker("two")
    values = [n async for n in ticks(3)]
    print("values", values)
    return one + two


def run(coroutine):
    answer = None
    steps = 0
    while steps < 60:
        try:
            asked = coroutine.send(answer)
        except StopIteration as stop:
            print("steps", steps)
            return stop.value
        steps += 1
        print("asked", asked)
        answer = steps


later = worker("later")
print("made")
result = run(main())
print("result", result)
print("later", run(later))
