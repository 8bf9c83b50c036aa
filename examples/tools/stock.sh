# Asks the tool of stock.json: cupel run --tools stock.find stock.sh, with the engine of this folder.
for word in tea gold; do
    found=$(tool stock.find word="$word" limit:=1)
    echo "$word: $found"
done
tool stock.find '{"word": 5}' 2>&1 || echo "exit code $?"
