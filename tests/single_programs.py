"""Programs of many processes that print what comes of it, for the tests of `--single`."""

MANY = '''\
"""Uses everything, and prints what comes of it: the same with processes and without."""
import multiprocessing as mp, os, random, signal, sys, threading, time
from concurrent.futures import ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.pool import ThreadPool

SETTING = None

def note():
    with open(os.environ["PIDS"], "a") as file:
        file.write(f"{os.getpid()}\\n")

def square(x):
    note()
    return x * x

def setting(value):
    global SETTING
    SETTING = [value]
    signal.signal(signal.SIGINT, signal.SIG_IGN)

def with_setting(x):
    SETTING.append(x)
    return SETTING[0] + x

def served():
    SETTING.append(0)
    return len(SETTING)

def picky(x):
    if x == 3:
        raise ValueError("three")
    return x

def changed(values):
    values.append("mine")
    return values

def named():
    process = mp.current_process()
    return process.name.rstrip("0123456789"), process.daemon, mp.parent_process().name

def unpicklable():
    return lambda: 1

def consumer(numbers, results):
    while (x := numbers.get()) is not None:
        results.put(x * 2)
    results.close()

def answering(end, other):
    other.close()
    while True:
        try:
            end.send(end.recv() + 1)
        except EOFError:
            return

async def handles_signals():
    import asyncio
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print)
    await asyncio.sleep(0.01)
    return "handled"

def leaves(how):
    if how == "loop":
        import asyncio
        print(asyncio.run(handles_signals()), flush=True)
    if how == "exit":
        sys.exit(3)
    if how == "words":
        sys.exit("words")
    if how == "_exit":
        os._exit(7)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise":
        raise KeyError("boom")

def meets(barrier, results, number):
    barrier.wait()
    results.put(number)

def for_ever(event):
    event.set()
    while True:
        time.sleep(0.01)

def counts(value, lock):
    for _ in range(100):
        with lock:
            value.value += 1

def messes(folder):
    os.chdir(folder)
    os.environ["MESS"] = "1"
    sys.stdout = sys.stderr
    random.seed(99)

def fills(shared):
    shared["a"] = shared.get("a", 0) + 1

def waits_for(event):
    return event.wait(20)

class Mine(mp.Process):
    def __init__(self, results):
        super().__init__(name="mine", daemon=True)
        self.results = results

    def run(self):
        self.results.put((self.name, mp.current_process() is self))

def raised(call):
    try:
        return call()
    except BaseException as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:60]}"

def pools():
    with mp.Pool(4, setting, (10,)) as pool:
        print(pool.map(square, range(10)), pool.map(square, []), pool.map(square, range(3), 2))
        print(pool.starmap(pow, [(2, 3), (3, 2)]), pool.apply(pow, (2, 5)))
        print([*pool.imap(square, range(5))], sorted(pool.imap_unordered(square, range(5), 2)))
        got, wrong = [], []
        result = pool.apply_async(square, (5,), callback=got.append)
        print(result.get(10), result.ready(), result.successful(), got)
        result = pool.map_async(picky, range(5), error_callback=wrong.append)
        result.wait(10)
        print(result.successful(), raised(result.get), [str(one) for one in wrong])
        print(raised(lambda: pool.map(picky, range(5))), raised(lambda: pool.apply(picky, (3,))))
        results = pool.imap(picky, range(5))
        print([raised(results.__next__) for _ in range(6)])
        values = ["theirs"]
        print(pool.apply(changed, (values,)), values)
        print(raised(lambda: pool.apply(unpicklable)).partition(":")[0])
        print(raised(lambda: pool.apply(lambda: 1)).partition(":")[0])
        print(pool.apply(named), isinstance(pool, type(pool).__mro__[0]))
        print(pool.apply(with_setting, (5,)))
    print(raised(lambda: pool.apply(square, (1,))), raised(lambda: mp.Pool(0)))
    done = []
    pool = mp.Pool(1, setting, (10,), maxtasksperchild=2)
    print([pool.apply(served) for _ in range(5)])
    pool.apply_async(square, (2,), callback=done.append)
    pool.imap(square, range(3))
    print(raised(pool.join))
    pool.close()
    pool.join()
    print(done, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    with ThreadPool(2) as threads:
        print(threads.map(square, range(3)))
    with mp.Pool(2) as pool, mp.Manager() as manager:
        event = manager.Event()
        waiting = pool.apply_async(waits_for, (event,))
        event.set()
        print(waiting.get(20))

def executors():
    with ProcessPoolExecutor(3) as executor:
        print([*executor.map(square, range(7), chunksize=3)], [*executor.map(pow, [2], [5])])
        futures = [executor.submit(picky, number) for number in range(5)]
        print(sorted(one.result() for one in as_completed(futures) if not one.exception()))
        print(raised(futures[3].result), raised(lambda: [*executor.map(picky, range(5))]))
        print(len(wait(futures).done), executor.submit(changed, []).result())
    print(raised(lambda: executor.submit(square, 1)).partition(":")[0])
    with ProcessPoolExecutor(1) as executor:
        print(raised(executor.submit(leaves, "_exit").result).partition(":")[0])
        print(raised(lambda: executor.submit(square, 1)).partition(":")[0])
    with ProcessPoolExecutor(1, initializer=leaves, initargs=("raise",)) as executor:
        print(raised(executor.submit(square, 1).result).partition(":")[0])

def processes():
    numbers, results = mp.Queue(), mp.Queue()
    process = mp.Process(target=consumer, args=(numbers, results))
    process.start()
    for x in (1, 2, 3, None):
        numbers.put(x)
    print([results.get(timeout=20) for _ in range(3)], process.join(20), process.exitcode)
    here, there = mp.Pipe()
    process = mp.Process(target=answering, args=(there, here))
    process.start()
    there.close()
    here.send(1)
    print(here.recv(), process.is_alive())
    here.close()
    process.join(20)
    print(process.exitcode, process.is_alive())
    for how in ("", "loop", "exit", "words", "_exit", "kill", "raise"):
        process = mp.Process(target=leaves, args=(how,))
        process.start()
        process.join()
        print(how, process.exitcode, mp.active_children())
    barrier, results = mp.Barrier(3), mp.Queue()
    several = [mp.Process(target=meets, args=(barrier, results, n)) for n in range(3)]
    [one.start() for one in several]
    print(sorted(results.get(timeout=20) for _ in several), [one.join(20) for one in several])
    begun = mp.Event()
    process = mp.Process(target=for_ever, args=(begun,))
    process.start()
    print(begun.wait(20), process.is_alive(), process.exitcode)
    process.terminate()
    process.join()
    print(process.exitcode, mp.connection.wait([process.sentinel], 20) == [process.sentinel])
    process.close()
    print(raised(lambda: process.is_alive()))
    value, lock = mp.Value("i", 0), mp.Lock()
    several = [mp.Process(target=counts, args=(value, lock)) for _ in range(3)]
    [one.start() for one in several]
    print([one.join(20) for one in several], value.value)
    results = mp.SimpleQueue()
    process = Mine(results)
    process.start()
    print(results.get(), process.daemon)
    with mp.Manager() as manager:
        shared = manager.dict()
        for _ in range(2):
            process = mp.Process(target=fills, args=(shared,))
            process.start()
            process.join()
        print(dict(shared))
    before = os.getcwd(), sys.stdout, random.getstate()
    process = mp.Process(target=messes, args=("/",))
    process.start()
    process.join()
    print("mess", (os.getcwd(), sys.stdout, random.getstate()) == before, "MESS" in os.environ)
    print("drawn", random.random())
    print(raised(lambda: mp.Process(target=square).join()))

if __name__ == "__main__":
    random.seed(5)
    note()
    pools()
    executors()
    processes()
    print("whole")
'''
WAITS = '''\
"""Processes that need each other: what would never end if one simply ran after the other."""
import multiprocessing as mp, socket, threading, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.shared_memory import SharedMemory

def large(results):
    results.put(b"x" * 3_000_000)
    results.put(b"y")

def takes(lock, results):
    with lock:
        results.put("had it")

def works(tasks, results):
    while (task := tasks.get()) is not None:
        results.put(task + 1)
        tasks.task_done()
    tasks.task_done()

def together(barrier):
    global BARRIER
    BARRIER = barrier

def meets(x):
    BARRIER.wait(30)
    return x

def listens(inbox, outbox):
    outbox.put("listening")
    return inbox.get(timeout=30)

def pools(results):
    with mp.Pool(2) as pool:
        results.put(pool.map(abs, [-1, -2]))

def outer(results):
    inner = mp.Process(target=takes, args=(mp.Lock(), results))
    inner.start()
    inner.join()
    results.put(inner.exitcode)

def sleeps(seconds, word):
    time.sleep(seconds)
    print(word, flush=True)

def echoes(client):
    while data := client.recv(100):
        client.sendall(data.upper())
    client.close()

def writes(block):
    block.buf[0] = 7
    block.close()

def stage(source, target):
    while True:
        item = source.recv()
        target.send(item * 10)
        if item == 0:
            return

def main():
    results = mp.SimpleQueue()
    process = mp.Process(target=large, args=(results,))
    process.start()
    print(len(results.get()), results.get(), process.join(30), process.exitcode)

    lock, answers = mp.Lock(), mp.Queue()
    with lock:
        process = mp.Process(target=takes, args=(lock, answers))
        process.start()
        print("alive", process.is_alive())
    print(answers.get(timeout=30), process.join(30))

    tasks, answers = mp.JoinableQueue(), mp.Queue()
    several = [mp.Process(target=works, args=(tasks, answers), daemon=True) for _ in range(3)]
    [one.start() for one in several]
    for number in (1, 2, 3, 4, None, None, None):
        tasks.put(number)
    tasks.join()
    print(sorted(answers.get(timeout=30) for _ in range(4)), [one.join(30) for one in several])

    with mp.Pool(3, together, (mp.Barrier(3),)) as pool:
        print(sorted(pool.map(meets, range(3), chunksize=1)))

    with mp.Manager() as manager, ProcessPoolExecutor(2) as executor:
        inbox, outbox = manager.Queue(), manager.Queue()
        future = executor.submit(listens, inbox, outbox)
        print(outbox.get(timeout=30), future.done())
        inbox.put("word")
        print(future.result(30))

    guard, seen = threading.Lock(), []
    def collect(value):
        with guard:
            seen.append(value)
    with mp.Pool(2) as pool:
        with guard:
            result = pool.apply_async(abs, (-7,), callback=collect)
        result.wait()
        pool.close()
        pool.join()
    print(seen)

    answers = mp.Queue()
    for target in (pools, outer):
        process = mp.Process(target=target, args=(answers,))
        process.start()
        print(answers.get(timeout=30), process.join(30), process.exitcode)
    print(answers.get(timeout=30))

    first, one = mp.Pipe()
    two, three = mp.Pipe()
    process = mp.Process(target=stage, args=(one, two))
    process.start()
    for item in (1, 2, 0):
        first.send(item)
        print(three.recv())
    process.join(30)

    here, there = socket.socketpair()
    process = mp.Process(target=echoes, args=(there,))
    process.start()
    there.close()
    here.sendall(b"hello")
    print(here.recv(100), here.shutdown(socket.SHUT_WR), process.join(30), process.exitcode)

    block = SharedMemory(create=True, size=10)
    process = mp.Process(target=writes, args=(block,))
    process.start()
    process.join()
    print(block.buf[0], block.close(), block.unlink())

    context = mp.get_context("spawn")
    answers, lock = context.Queue(), context.Lock()
    process = context.Process(target=takes, args=(lock, answers))
    process.start()
    print(answers.get(timeout=60), process.join(60), process.exitcode)

    mp.Process(target=sleeps, args=(600, "never"), daemon=True).start()
    mp.Process(target=sleeps, args=(1.0, "last")).start()
    print("end of main", flush=True)

if __name__ == "__main__":
    main()
'''
THREADS = '''\
"""Threads and an event loop that use pools and processes at once."""
import asyncio, multiprocessing as mp, os, threading, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

def square(x):
    return x * x

def nap(x):
    time.sleep(0.01)
    return x

def all_at_once(call, count):
    threads = [threading.Thread(target=call, args=(number,)) for number in range(count)]
    [one.start() for one in threads]
    [one.join() for one in threads]

async def gathered():
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(4) as executor:
        return await asyncio.gather(*[loop.run_in_executor(executor, square, n) for n in range(9)])

def main():
    right, codes = [], []
    with mp.Pool(4) as pool:
        def use(number):
            for _ in range(10):
                same = pool.map(square, range(number, 20)) == [n * n for n in range(number, 20)]
                right.append(same and pool.apply_async(nap, (number,)).get() == number)
        all_at_once(use, 8)
    print(all(right), len(right))
    with ThreadPoolExecutor(4) as threads, ProcessPoolExecutor(3) as executor:
        asked = [threads.submit(lambda n=n: executor.submit(square, n).result()) for n in range(50)]
        print(sum(one.result() for one in asked))
    print(asyncio.run(gathered()))
    before = os.getcwd(), dict(os.environ)
    def start(number):
        process = mp.Process(target=nap, args=(number,))
        process.start()
        process.join()
        codes.append(process.exitcode)
    all_at_once(start, 6)
    print(codes, (os.getcwd(), dict(os.environ)) == before)

if __name__ == "__main__":
    main()
'''
