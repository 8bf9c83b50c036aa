"""Run tests of CPython by name and write what became of each to verdicts.json; inside a box and
outside. CPython's own runner has a report too, which breaks on tests that fail in a thread."""
import json
import sys
import unittest
from test import support


class Verdicts(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.said = {}

    def say(self, test, word):
        name = test.id().removeprefix("test.")
        if self.said.get(name) != "fails":  # the last word is not always the worst
            self.said[name] = word

    def addSuccess(self, test):
        self.say(test, "passes")

    def addExpectedFailure(self, test, err):
        self.say(test, "passes")

    def addUnexpectedSuccess(self, test):
        self.say(test, "fails")

    def addSkip(self, test, reason):
        self.say(test, "skipped")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.say(test, "fails")

    def addError(self, test, err):
        super().addError(test, err)
        self.say(test, "fails")

    def addSubTest(self, test, part, err):
        super().addSubTest(test, part, err)
        if err:
            self.say(test, "fails")


def main():
    support.use_resources = []  # nothing from the network, nothing that takes minutes
    result = Verdicts()
    unittest.defaultTestLoader.loadTestsFromNames(["test." + name for name in sys.argv[1:]]).run(result)
    with open("verdicts.json", "w") as file:
        json.dump(result.said, file)
    for test, text in result.errors + result.failures:
        print(test.id(), text, sep="\n", end="\n\n")


if __name__ == "__main__":
    main()
