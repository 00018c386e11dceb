# mypy: ignore-errors
class Base:
    kind = "base"

    def __init__(self, rate):
        self.rate = rate
        self.log = []

    def step(self, n):
        value = n * self.rate
        self.log.append(value)
        return value

    def describe(self):
        return f"{self.kind} {self.rate}"


class Trainer(Base):
    """Trains."""

    kind = "trainer"

    def __init__(self, rate, epochs=3):
        super().__init__(rate)
        self.epochs = epochs
        self.best = None

    def step(self, n):
        value = super().step(n)
        value += 1
        return value

    def epoch(self, number):
        total = 0
        for n in range(3):
            loss = self.step(n + number)
            total += loss
        print("epoch", number, total)
        return total

    def fit(self):
        for number in range(self.epochs):
            total = self.epoch(number)
            if self.best is None or total > self.best:
                self.best = total
        return self

    def evaluate(self):
        score = self.best / len(self.log)
        print("score", round(score, 3))
        return score

    def __repr__(self):
        return f"Trainer({self.rate}, best={self.best})"


def main():
    trainer = Trainer(2)
    print(trainer.describe())
    trainer.fit()
    print(trainer)
    score = trainer.evaluate()
    other = Trainer(1, epochs=2)
    other.fit()
    print(other, score > other.best)
    print(trainer.log[-2:], Base(3).describe())


main()
