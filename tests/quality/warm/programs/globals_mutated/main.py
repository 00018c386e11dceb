# mypy: ignore-errors
counter = 0
config = {"rate": 2}
events = []


def bump():
    global counter
    counter += config["rate"]
    events.append(("bump", counter))


def configure(**options):
    config.update(options)
    events.append(("configure", sorted(options)))


def fresh():
    global created
    created = len(events)


def shadow():
    counter = 100
    counter += 1
    return counter


def swap():
    global config
    config = {**config, "rate": config["rate"] + 1}
    return config


bump()
bump()
print(counter)
configure(rate=5, name="x")
bump()
print(counter, config)
fresh()
print(created)
print(shadow(), counter)
alias = config
swap()
print(alias is config, config["rate"])
for n in range(3):
    bump()
    globals()[f"made_{n}"] = counter
print(made_0, made_2)
del created
print("created" in globals())
try:
    print(created)
except NameError as error:
    print(error)
print(len(events), events[-1])
