"""What most tests ask about: a small table, code that reads it, and answers to it."""
from asking import fence

TREES = {"oak": 120.5, "elm": 80.25, "ash": 300.0, "fir": 42.75, "yew": 199.5, "box": 61.0, "bay": 15.125, "fig": 5.5,
         "lime": 230.0, "plum": 77.0, "pear": 98.0, "hazel": 33.0}
CSV = "tree,amount\n" + "".join(f"{name},{amount}\n" for name, amount in TREES.items())
FILES = {"trees.csv": CSV}
TOTAL = sum(TREES.values())          # 1262.625
LARGEST = sorted(TREES, key=TREES.get, reverse=True)

READ = """
import csv
rows = {row["tree"]: float(row["amount"]) for row in csv.DictReader(open("trees.csv"))}
"""
SUM = READ + "total = sum(rows.values())\nprint('total', total)"


def top(count):
    return READ + f"for name in sorted(rows, key=rows.get, reverse=True)[:{count}]:\n    print(name, rows[name])"


def listing(names, amounts=TREES):
    return "\n".join(f"{place}. {name}: {amounts[name]}" for place, name in enumerate(names, 1))


def total(answer="The total amount is 1,262.625.", code=SUM):
    """Replies that compute the total."""
    return [fence(code), answer]


QUESTION = "What is the total amount in trees.csv?"
