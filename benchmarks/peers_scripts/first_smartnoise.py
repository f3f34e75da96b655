import pandas as pd
import snsql

EPSILON = 0.11372  # 16 counts within 50, all together, in 95 of 100 cases
table = {"row_privacy": True, "censor_dims": False, "rows": 48842, "education": {"type": "string"}}
metadata = {"": {"adult": {"people": table}}}
privacy = snsql.Privacy(epsilon=EPSILON, delta=1e-9)
reader = snsql.from_df(pd.read_csv("people.csv"), privacy=privacy, metadata=metadata)
for row in reader.execute("SELECT education, COUNT(*) AS n FROM adult.people GROUP BY education"):
    print(*row)
print("epsilon", reader.odometer.spent[0])
