from tools import ToolDenied, ToolError, shop

total = sum(shop.price(name) * pieces for name, pieces in {"tea": 2, "rice": 3}.items())
print("total", total)
for call, name in ((shop.price, "gold"), (shop.delete, "tea"), (shop.price, 5)):
    try:
        call(name=name)
    except ToolDenied as problem:
        print("denied:", problem.reason)
    except ToolError as problem:
        print("failed:", problem.reason)
