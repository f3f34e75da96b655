import bursar

db = bursar.create("bursar.toml")
print(db.query("SELECT education, COUNT(*) AS n FROM people GROUP BY education", within=50, confidence=0.95))
