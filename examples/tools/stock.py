"""The program of the tool stock.find: arguments as JSON on standard input, the value as JSON on standard output."""
import json
import sys

STOCK = [{"name": "green tea", "pieces": 40}, {"name": "black tea", "pieces": 0}, {"name": "coffee", "pieces": 12}]

given = json.load(sys.stdin)
found = [row for row in STOCK if given["word"] in row["name"]]
json.dump(found[:given.get("limit", 10)], sys.stdout)
