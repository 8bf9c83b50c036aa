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
TELL = 'answer("The total amount is {total:,.3f}.", total=total)'
ANSWER = "The total amount is 1,262.625."
PASS = "PASS"                        # the judge's verdict


def top(count):
    """Code that has the largest as `best`, [{tree, amount}]."""
    return READ + f"best = [dict(tree=n, amount=rows[n]) for n in sorted(rows, key=rows.get, reverse=True)[:{count}]]\n"


def total(code=SUM, tell=TELL, verdict=PASS):
    """Replies that compute the total, tell it, and judge it right."""
    return [fence(code), fence(tell), verdict]


END = total()[1:]                    # of a session that has the total
QUESTION = "What is the total amount in trees.csv?"
