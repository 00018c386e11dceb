# mypy: ignore-errors
import asyncio


async def fetch(name, ticks):
    for n in range(ticks):
        await asyncio.sleep(0)
    print("fetched", name)
    return name * ticks


async def first():
    value = await fetch("a", 2)
    return value


async def main():
    print("start")
    value = await first()
    print(value)
    both = await asyncio.gather(fetch("b", 2), fetch("c", 1))
    print(both)
    queue = asyncio.Queue()
    for n in range(3):
        await queue.put(n)
    while not queue.empty():
        print("item", await queue.get())
    return len(both)


greeting = "hello"
print(greeting)
count = asyncio.run(main())
print("count", count)
print(asyncio.run(first()))
