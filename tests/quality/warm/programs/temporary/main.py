# mypy: ignore-errors
import os
import shutil
import tempfile

start = os.getcwd()
os.environ["MY_SETTING"] = "on"
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.txt")
    with open(path, "w") as file:
        file.write("temporary")
    print(open(path).read(), len(os.listdir(folder)))
    os.chdir(folder)
    print(os.path.exists("a.txt"))
    os.chdir(start)
print(os.path.exists(folder))
scratch = tempfile.mkdtemp()
with open(os.path.join(scratch, "b.txt"), "w") as file:
    file.write("kept a while")
size = os.path.getsize(os.path.join(scratch, "b.txt"))
print(size)
shutil.copy(os.path.join(scratch, "b.txt"), "copy.txt")
shutil.rmtree(scratch)
print(os.path.exists(scratch), os.environ["MY_SETTING"])
os.environ["MY_SETTING"] = "off"
with tempfile.TemporaryFile("w+") as file:
    file.write("nameless")
    file.seek(0)
    print(file.read())
os.mkdir("work")
os.chdir("work")
with open("in_work.txt", "w") as file:
    print("here", file=file)
print(os.path.basename(os.getcwd()), os.getenv("MY_SETTING"))
os.umask(0o077)
print(os.listdir("."))
