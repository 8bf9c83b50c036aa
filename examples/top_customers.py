"""The five customers with the most revenue: a table and a bar chart."""
import matplotlib.pyplot as plt
import pandas as pd

sales = pd.read_csv("sales.csv", parse_dates=["date"])
sales["revenue"] = sales["quantity"] * sales["unit_price"]
top = (sales.groupby("customer")
       .agg(orders=("date", "size"), revenue=("revenue", "sum"))
       .sort_values("revenue", ascending=False)
       .head(5))
print(top.to_string(float_format="{:,.2f}".format))

fig, ax = plt.subplots(figsize=(7, 3.5))
ax.barh(top.index[::-1], top["revenue"][::-1], color="#2f6f9f")
ax.set_title(f"Top five customers by revenue, {sales['date'].min():%b %Y} to {sales['date'].max():%b %Y}")
ax.xaxis.set_major_formatter("{x:,.0f}")
fig.tight_layout()
fig.savefig("top_customers.png", dpi=120)
plt.close(fig)
