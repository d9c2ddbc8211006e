-- Everyday queries, one on each line, for test_shipped_sql.py: the grammar accepts each, and so does SQLite.
SELECT 1
select 1;
SELECT * FROM users
SELECT u.* FROM users u
SELECT id, name, email FROM users
SELECT DISTINCT country FROM customers
SELECT ALL country FROM customers
SELECT COUNT(*) FROM orders
SELECT COUNT(DISTINCT customer_id) FROM orders
SELECT name AS customer_name, email AS "E-mail" FROM customers
SELECT name customer_name FROM customers
SELECT first_name || ' ' || last_name AS full_name FROM employees
SELECT price * quantity AS total, price * quantity * 0.19 tax FROM order_items
SELECT * FROM products WHERE price > 100
SELECT * FROM products WHERE price >= 100 AND price <= 200
SELECT * FROM products WHERE price BETWEEN 100 AND 200
SELECT * FROM products WHERE price NOT BETWEEN 100 AND 200 AND stock > 0
SELECT * FROM products WHERE category = 'books' OR category = 'music'
SELECT * FROM products WHERE category IN ('books', 'music', 'film')
SELECT * FROM products WHERE category NOT IN ('books')
SELECT * FROM products WHERE name LIKE 'A%'
SELECT * FROM products WHERE name NOT LIKE '%\_%' ESCAPE '\'
SELECT * FROM products WHERE name GLOB '*[0-9]'
SELECT * FROM products WHERE description IS NULL
SELECT * FROM products WHERE description IS NOT NULL
SELECT * FROM products WHERE description NOTNULL
SELECT * FROM products WHERE description ISNULL
SELECT * FROM products WHERE description NOT NULL
SELECT * FROM products WHERE NOT (price < 10 OR stock = 0)
SELECT * FROM products WHERE NOT discontinued
SELECT * FROM products WHERE price <> 10
SELECT * FROM products WHERE price != 10
SELECT * FROM products WHERE price == 10
SELECT * FROM users ORDER BY name
SELECT * FROM users ORDER BY last_name ASC, first_name DESC
SELECT * FROM users ORDER BY created_at DESC LIMIT 10
SELECT * FROM users ORDER BY created_at DESC LIMIT 10 OFFSET 20
SELECT * FROM users LIMIT 20, 10
SELECT * FROM users ORDER BY score DESC NULLS LAST
SELECT * FROM users ORDER BY score NULLS FIRST, name COLLATE NOCASE
SELECT * FROM users ORDER BY 2, 1 DESC
SELECT * FROM users ORDER BY length(name) DESC
SELECT * FROM users ORDER BY CASE status WHEN 'new' THEN 0 ELSE 1 END, name
SELECT department, AVG(salary) FROM employees GROUP BY department
SELECT department, AVG(salary) AS average FROM employees GROUP BY department HAVING AVG(salary) > 50000
SELECT department, job, MIN(salary), MAX(salary), SUM(salary) FROM employees GROUP BY department, job ORDER BY 1, 2
SELECT strftime('%Y-%m', created_at) AS month, COUNT(*) FROM orders GROUP BY month
SELECT strftime('%Y', o.date) y, SUM(o.total) FROM orders o GROUP BY strftime('%Y', o.date) HAVING SUM(o.total) > 1000 ORDER BY y
SELECT date('now'), datetime('now', '-1 day'), time('now', 'localtime')
SELECT julianday('now') - julianday(birthday) FROM people
SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer_id = c.id
SELECT o.id, c.name FROM orders AS o INNER JOIN customers AS c ON c.id = o.customer_id WHERE o.total > 100
SELECT c.name, o.id FROM customers c LEFT JOIN orders o ON o.customer_id = c.id
SELECT c.name, o.id FROM customers c LEFT OUTER JOIN orders o ON o.customer_id = c.id WHERE o.id IS NULL
SELECT * FROM a RIGHT JOIN b ON a.x = b.x
SELECT * FROM a FULL OUTER JOIN b ON a.x = b.x
SELECT * FROM a FULL JOIN b USING (x)
SELECT * FROM a CROSS JOIN b
SELECT * FROM a NATURAL JOIN b
SELECT * FROM a NATURAL LEFT JOIN b
SELECT * FROM a, b WHERE a.id = b.a_id
SELECT * FROM a, b, c WHERE a.id = b.id AND b.id = c.id
SELECT * FROM a JOIN b USING (id)
SELECT * FROM a JOIN b USING (id, version) JOIN c USING (id)
SELECT * FROM a JOIN b
SELECT * FROM (a JOIN b ON a.x = b.x) JOIN c ON c.y = b.y
SELECT * FROM a JOIN (b JOIN c ON b.id = c.id) ON a.id = b.id
SELECT e.name, m.name AS manager FROM employees e LEFT JOIN employees m ON e.manager_id = m.id
SELECT p.name, c.name, s.name FROM products p JOIN categories c ON p.category_id = c.id JOIN suppliers s ON p.supplier_id = s.id WHERE c.name = 'Toys' ORDER BY p.name
SELECT * FROM main.users
SELECT main.users.name FROM main.users
SELECT u.name FROM main.users AS u
SELECT * FROM json_each('[1,2,3]')
SELECT value FROM json_each('[1,2,3]') AS j WHERE j.value > 1
SELECT value FROM generate_series(1, 10)
SELECT u.name, j.value FROM users u, json_each(u.tags) j
SELECT * FROM (SELECT id, name FROM users WHERE active = 1) AS active_users
SELECT * FROM (SELECT id FROM users) WHERE id > 10
SELECT t.n FROM (SELECT COUNT(*) AS n FROM orders) t
SELECT name FROM users WHERE id IN (SELECT user_id FROM orders WHERE total > 100)
SELECT name FROM users WHERE id NOT IN (SELECT user_id FROM orders)
SELECT name FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id)
SELECT name FROM users u WHERE NOT EXISTS (SELECT * FROM orders o WHERE o.user_id = u.id AND o.total > 10)
SELECT name, (SELECT COUNT(*) FROM orders o WHERE o.user_id = u.id) AS order_count FROM users u
SELECT name FROM employees WHERE salary > (SELECT AVG(salary) FROM employees)
SELECT * FROM t WHERE (a, b) = (1, 2)
SELECT * FROM t WHERE (a, b) IN (SELECT x, y FROM u)
SELECT * FROM t WHERE (a, b) IN (VALUES (1, 2), (3, 4))
SELECT * FROM t WHERE a IN u
SELECT * FROM t WHERE a NOT IN main.u
SELECT * FROM t WHERE a IN ()
SELECT EXISTS (SELECT 1 FROM users WHERE name = 'x')
SELECT MAX(salary) FROM employees WHERE salary < (SELECT MAX(salary) FROM employees)
SELECT id FROM a UNION SELECT id FROM b
SELECT id FROM a UNION ALL SELECT id FROM b
SELECT id FROM a INTERSECT SELECT id FROM b
SELECT id FROM a EXCEPT SELECT id FROM b
SELECT id, 'a' AS source FROM a UNION ALL SELECT id, 'b' FROM b UNION SELECT 0, 'c' ORDER BY id LIMIT 5
SELECT * FROM (SELECT 1 AS x UNION SELECT 2 UNION SELECT 3) ORDER BY x DESC
VALUES (1, 2), (3, 4)
VALUES (1) UNION SELECT 2 ORDER BY 1
SELECT 1 UNION VALUES (2), (3)
WITH recent AS (SELECT * FROM orders WHERE date > '2024-01-01') SELECT * FROM recent
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a, b
WITH totals(customer, total) AS (SELECT customer_id, SUM(amount) FROM payments GROUP BY customer_id) SELECT customer FROM totals WHERE total > 100
WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < 10) SELECT n FROM counter
WITH RECURSIVE counter(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM counter WHERE n < 10) SELECT * FROM counter
WITH RECURSIVE tree AS (SELECT id, parent_id, name, 0 AS depth FROM nodes WHERE parent_id IS NULL UNION ALL SELECT n.id, n.parent_id, n.name, t.depth + 1 FROM nodes n JOIN tree t ON n.parent_id = t.id) SELECT * FROM tree ORDER BY depth, name
WITH x AS MATERIALIZED (SELECT 1) SELECT * FROM x
WITH x AS NOT MATERIALIZED (SELECT 1) SELECT * FROM x
WITH x AS (WITH y AS (SELECT 1 AS a) SELECT a FROM y) SELECT a FROM x
SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x)
SELECT name, ROW_NUMBER() OVER (ORDER BY salary DESC) FROM employees
SELECT name, RANK() OVER (PARTITION BY department ORDER BY salary DESC) AS r FROM employees
SELECT name, DENSE_RANK() OVER w, NTILE(4) OVER w FROM employees WINDOW w AS (ORDER BY salary)
SELECT date, SUM(amount) OVER (ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running FROM payments
SELECT date, AVG(amount) OVER (ORDER BY date ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) FROM payments
SELECT date, AVG(amount) OVER (ORDER BY date ROWS 6 PRECEDING) FROM payments
SELECT SUM(x) OVER (ORDER BY y RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t
SELECT SUM(x) OVER (ORDER BY y GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM t
SELECT SUM(x) OVER (ROWS UNBOUNDED PRECEDING) FROM t
SELECT SUM(x) OVER () FROM t
SELECT LAG(price, 1, 0) OVER (PARTITION BY symbol ORDER BY day) AS previous, LEAD(price) OVER (PARTITION BY symbol ORDER BY day) AS next FROM quotes
SELECT FIRST_VALUE(name) OVER (PARTITION BY team ORDER BY points DESC) FROM players
SELECT SUM(x) OVER (w ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t WINDOW w AS (PARTITION BY a ORDER BY b), v AS (w)
SELECT COUNT(*) FILTER (WHERE status = 'open') FROM tickets
SELECT COUNT(*) FILTER (WHERE status = 'open') OVER (PARTITION BY owner) FROM tickets
SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY created_at DESC) AS rn FROM logins) WHERE rn = 1
SELECT CASE WHEN score >= 90 THEN 'A' WHEN score >= 80 THEN 'B' ELSE 'C' END AS grade FROM exams
SELECT CASE status WHEN 1 THEN 'new' WHEN 2 THEN 'done' END FROM jobs
SELECT SUM(CASE WHEN paid THEN amount ELSE 0 END) FROM bills
SELECT CASE WHEN a THEN CASE WHEN b THEN 1 ELSE 2 END ELSE 3 END FROM t
SELECT CAST(price AS INTEGER) FROM products
SELECT CAST('12' AS REAL), CAST(x AS VARCHAR(20)), CAST(y AS DECIMAL(10, 2)) FROM t
SELECT CAST(x AS UNSIGNED BIG INT) FROM t
SELECT COALESCE(nickname, first_name, 'unknown') FROM users
SELECT IFNULL(a, b), NULLIF(a, b), IIF(a > b, a, b) FROM t
SELECT UPPER(name), LOWER(name), LENGTH(name), SUBSTR(name, 1, 3) FROM users
SELECT TRIM(name), REPLACE(name, 'a', 'b'), INSTR(name, 'x') FROM users
SELECT ROUND(price, 2), ABS(-5), RANDOM(), MAX(1, 2) FROM products
SELECT GROUP_CONCAT(name, ', ') FROM users GROUP BY team
SELECT json_extract(data, '$.name') FROM documents
SELECT data -> 'a' ->> 'b' FROM documents
SELECT data->>'$.a[0]' AS first FROM documents WHERE data->>'kind' = 'x'
SELECT typeof(1), typeof('a'), typeof(NULL), typeof(x'00ff')
SELECT X'48656C6C6F', x''
SELECT 1.5, .5, 1., 1e10, 1.5E-3, 0x1F
SELECT -1, +1, - -1, ~1, -(-1), - x FROM t
SELECT 1 + 2 * 3 - 4 / 2 % 3, (1 + 2) * 3
SELECT a & b | c << 2 >> 1 FROM flags
SELECT * FROM flags WHERE bits & 4 = 4
SELECT 'it''s', '', 'a "quoted" word', "column ""name""" FROM t
SELECT [order], `group`, "select" FROM [my table]
SELECT "first name", "last name" FROM "my table" WHERE "id" = 5
SELECT * FROM users WHERE id = ?
SELECT * FROM users WHERE id = ?1 AND name = ?2
SELECT * FROM users WHERE id = :id AND name = @name AND city = $city
SELECT * FROM users WHERE name = 'O''Brien' COLLATE NOCASE
SELECT * FROM users WHERE name COLLATE BINARY = 'x'
SELECT TRUE, FALSE, NULL, CURRENT_TIMESTAMP, CURRENT_DATE, CURRENT_TIME
SELECT * FROM events WHERE created_at > datetime('now', '-7 days')
SELECT * FROM events WHERE date(created_at) = CURRENT_DATE
SELECT a IS b, a IS NOT b, a IS NOT NULL, a IS NULL FROM t
SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b FROM t
SELECT a = b = c, a < b < c, a AND b OR NOT c FROM t
SELECT NOT NOT a, NOT a = b, -a COLLATE NOCASE FROM t
SELECT a LIKE b OR a LIKE '%x%' AND c NOT GLOB 'y' FROM t
SELECT a BETWEEN 1 AND 2 AND b BETWEEN 3 AND 4 FROM t
SELECT a BETWEEN b + 1 AND c * 2 OR d FROM t
SELECT a IN (1, 2) IN (0, 1) FROM t
SELECT * FROM t WHERE x REGEXP '^a' AND y MATCH 'word'
SELECT key, value, type FROM settings
SELECT first, last, row, no, action FROM t
SELECT t.key, t.rowid, rowid FROM t
SELECT rows, range, groups, view, "end" FROM t
SELECT replace, abort, ignore FROM t
SELECT x AS key, y AS first, z AS row FROM t
SELECT année, größe, 名前 FROM données
SELECT a$b, _c, d1 FROM t_1
SELECT/* comment */1
SELECT 1 -- one
SELECT /* a; b */ 1, /* c */ 2 -- d
SELECT 'not -- a comment', '/* neither */'
SELECT 1--1
SELECT a-b,a*b,a/b FROM t
SELECT(1)
SELECT(1),(2)FROM(t)WHERE(a)
SELECT*FROM t
SELECT'a'FROM t
SELECT count(*)FROM t GROUP BY(a)
SELECT((((1))))
SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name
SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'users'
SELECT * FROM pragma_table_info('users')
SELECT last_insert_rowid(), changes()
SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n DESC, country LIMIT 3
SELECT p.id, p.title, COUNT(c.id) AS comments FROM posts p LEFT JOIN comments c ON c.post_id = p.id GROUP BY p.id, p.title HAVING COUNT(c.id) > 5 ORDER BY comments DESC LIMIT 10
SELECT a.name, b.name FROM people a JOIN people b ON a.city = b.city AND a.id < b.id
SELECT t1.id FROM t1 LEFT JOIN t2 ON t1.id = t2.id LEFT JOIN t3 ON t2.id = t3.id WHERE t3.id IS NULL
SELECT AVG(rating), COUNT(*) FROM reviews WHERE product_id = 42 AND rating IS NOT NULL
SELECT DISTINCT a.city FROM airports a JOIN flights f ON f.origin = a.code OR f.destination = a.code
SELECT MAX(total) - MIN(total) AS spread FROM orders
SELECT name FROM cities WHERE population > 1000000 ORDER BY population DESC LIMIT 5
SELECT name, population / area AS density FROM countries WHERE area > 0 ORDER BY density DESC
SELECT continent, SUM(population) FROM countries GROUP BY continent HAVING SUM(population) > 100000000
SELECT s.name FROM students s JOIN enrolments e ON e.student_id = s.id JOIN courses c ON c.id = e.course_id WHERE c.title = 'Databases' AND e.grade >= 4.0
SELECT name FROM students WHERE id = (SELECT student_id FROM enrolments ORDER BY grade DESC LIMIT 1)
SELECT d.name, (SELECT MAX(e.salary) FROM employees e WHERE e.department_id = d.id) FROM departments d
SELECT product_id, SUM(quantity) AS sold FROM order_items WHERE order_id IN (SELECT id FROM orders WHERE date >= '2024-01-01' AND date < '2025-01-01') GROUP BY product_id ORDER BY sold DESC LIMIT 10
SELECT COUNT(*) * 100.0 / (SELECT COUNT(*) FROM users) AS percent FROM users WHERE active
SELECT substr(email, instr(email, '@') + 1) AS domain, COUNT(*) FROM users GROUP BY 1 ORDER BY 2 DESC
SELECT id, parent_id FROM categories WHERE parent_id IS NOT NULL AND id NOT IN (SELECT parent_id FROM categories WHERE parent_id IS NOT NULL)
SELECT printf('%.2f', price), quote(name), hex(data), char(65), unicode('A') FROM t
SELECT min(a), max(b), total(c), avg(d) FROM t WHERE e
SELECT * FROM t WHERE a = 1 AND (b = 2 OR c = 3) AND NOT (d = 4 AND e = 5)
SELECT * FROM t WHERE a LIKE 'x%' AND b > 1 AND c IN (1,2,3) AND d IS NULL AND e BETWEEN 1 AND 5
SELECT * FROM t WHERE lower(name) LIKE lower('%' || ? || '%')
SELECT * FROM t ORDER BY RANDOM() LIMIT 1
SELECT * FROM t LIMIT 10 + 5 OFFSET 2 * 3
SELECT * FROM t LIMIT -1
SELECT * FROM t LIMIT :limit OFFSET :offset
SELECT a, b FROM t GROUP BY a, b HAVING COUNT(*) > 1
SELECT 1 WHERE 1 = 1
SELECT 1 FROM t HAVING 1
SELECT x FROM t WHERE y GROUP BY z
INSERT INTO users VALUES (1, 'Ada', 'ada@example.org')
INSERT INTO users (name, email) VALUES ('Ada', 'ada@example.org')
INSERT INTO users (name, email) VALUES ('Ada', NULL), ('Bob', 'bob@example.org')
INSERT INTO users (name) VALUES (?), (?), (?)
INSERT INTO users DEFAULT VALUES
INSERT OR REPLACE INTO settings (key, value) VALUES ('theme', 'dark')
INSERT OR IGNORE INTO tags (name) VALUES ('sql')
INSERT OR ABORT INTO t VALUES (1)
INSERT OR FAIL INTO t VALUES (1)
INSERT OR ROLLBACK INTO t VALUES (1)
REPLACE INTO settings (key, value) VALUES ('theme', 'dark')
INSERT INTO archive SELECT * FROM orders WHERE date < '2020-01-01'
INSERT INTO archive (id, total) SELECT id, total FROM orders ORDER BY id LIMIT 10
INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x
WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x
INSERT INTO main.t (a) VALUES (1)
INSERT INTO t AS target (a) VALUES (1)
INSERT INTO counters (name, n) VALUES ('x', 1) ON CONFLICT (name) DO UPDATE SET n = n + 1
INSERT INTO counters (name, n) VALUES ('x', 1) ON CONFLICT (name) DO UPDATE SET n = excluded.n WHERE excluded.n > n
INSERT INTO counters (name, n) VALUES ('x', 1) ON CONFLICT DO NOTHING
INSERT INTO counters (name, n) VALUES ('x', 1) ON CONFLICT (name) DO NOTHING
INSERT INTO t (a, b) VALUES (1, 2) ON CONFLICT (a) WHERE b > 0 DO UPDATE SET b = 3, c = 4
INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO NOTHING ON CONFLICT DO UPDATE SET b = 1
INSERT INTO t (a) VALUES (1) RETURNING id
INSERT INTO t (a) VALUES (1) RETURNING *
INSERT INTO t (a) VALUES (1) RETURNING id, a AS value, b + 1
INSERT INTO t VALUES (CURRENT_TIMESTAMP, datetime('now'), 1 + 1, (SELECT MAX(id) FROM u), -5, x'00')
INSERT INTO t VALUES (1, 2), (3, 4) ON CONFLICT (a, b) DO UPDATE SET (a, b) = (5, 6) RETURNING a
INSERT INTO "my table" ("a b", [c d]) VALUES (1, 2)
INSERT INTO users (name) SELECT 'x' WHERE NOT EXISTS (SELECT 1 FROM users WHERE name = 'x')
INSERT INTO t (key, value) VALUES ('a', 1);
UPDATE users SET name = 'Ada' WHERE id = 1
UPDATE users SET name = 'Ada', email = NULL, updated_at = CURRENT_TIMESTAMP WHERE id = ?
UPDATE products SET price = price * 1.1
UPDATE products SET price = ROUND(price * 0.9, 2) WHERE category IN ('books', 'music')
UPDATE t SET (a, b) = (1, 2) WHERE c = 3
UPDATE t SET (a, b) = (SELECT x, y FROM u WHERE u.id = t.id)
UPDATE orders SET status = 'shipped' WHERE id IN (SELECT order_id FROM shipments)
UPDATE employees SET salary = (SELECT AVG(salary) FROM employees) WHERE salary IS NULL
UPDATE OR IGNORE users SET email = lower(email)
UPDATE OR REPLACE users SET id = id + 1
UPDATE inventory SET quantity = quantity - daily.amount FROM (SELECT SUM(quantity) AS amount, item_id FROM sales GROUP BY item_id) AS daily WHERE inventory.item_id = daily.item_id
UPDATE a SET x = b.y FROM b WHERE a.id = b.id
UPDATE a SET x = b.y FROM b JOIN c ON b.id = c.id WHERE a.id = b.id
UPDATE users AS u SET name = 'x' WHERE u.id = 1
UPDATE main.users SET active = 0
UPDATE users SET active = NOT active WHERE id = 1 RETURNING id, active
UPDATE settings SET value = 'x' WHERE key = 'y'
UPDATE t SET a = CASE WHEN b > 0 THEN 1 ELSE 0 END
UPDATE t SET data = json_set(data, '$.a', 1) WHERE id = 3;
WITH x AS (SELECT id FROM t LIMIT 1) UPDATE t SET a = 1 WHERE id IN (SELECT id FROM x)
DELETE FROM users
DELETE FROM users WHERE id = 1
DELETE FROM users WHERE last_login < date('now', '-1 year') AND NOT admin
DELETE FROM orders WHERE customer_id IN (SELECT id FROM customers WHERE country = 'XX')
DELETE FROM main.users WHERE id = 1
DELETE FROM users AS u WHERE u.id = 1
DELETE FROM t WHERE rowid NOT IN (SELECT MIN(rowid) FROM t GROUP BY name)
DELETE FROM t WHERE a = 1 RETURNING *
DELETE FROM sessions WHERE expires_at <= strftime('%s', 'now')
WITH old AS (SELECT id FROM t WHERE x < 0) DELETE FROM t WHERE id IN old
CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE)
CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY AUTOINCREMENT, name VARCHAR(255) NOT NULL DEFAULT '', created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)
CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users(id) ON DELETE CASCADE, total DECIMAL(10, 2) CHECK (total >= 0))
CREATE TABLE order_items (order_id INTEGER, product_id INTEGER, quantity INTEGER DEFAULT 1, PRIMARY KEY (order_id, product_id), FOREIGN KEY (order_id) REFERENCES orders(id), FOREIGN KEY (product_id) REFERENCES products (id) ON UPDATE CASCADE ON DELETE SET NULL)
CREATE TABLE t (a, b, c)
CREATE TABLE t (a INT, b REAL, c BLOB, d NUMERIC, e DOUBLE PRECISION, f)
CREATE TABLE t (id INTEGER PRIMARY KEY DESC)
CREATE TABLE t (a TEXT COLLATE NOCASE, b INTEGER DEFAULT -1, c REAL DEFAULT +1.5, d TEXT DEFAULT (datetime('now')), e BOOLEAN DEFAULT TRUE, f DEFAULT NULL)
CREATE TABLE t (a INTEGER CONSTRAINT positive CHECK (a > 0), CONSTRAINT pk PRIMARY KEY (a), CONSTRAINT u UNIQUE (a))
CREATE TABLE t (a, b, UNIQUE (a, b) ON CONFLICT REPLACE, CHECK (a < b))
CREATE TABLE t (a PRIMARY KEY ON CONFLICT IGNORE, b UNIQUE ON CONFLICT ABORT, c NOT NULL ON CONFLICT FAIL)
CREATE TABLE t (width REAL, height REAL, area REAL GENERATED ALWAYS AS (width * height) STORED, half AS (area / 2) VIRTUAL, third AS (area / 3))
CREATE TABLE t (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID
CREATE TABLE t (a INTEGER, b TEXT) STRICT
CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT) STRICT, WITHOUT ROWID
CREATE TEMP TABLE t (a)
CREATE TEMPORARY TABLE IF NOT EXISTS t (a)
CREATE TABLE main.t (a)
CREATE TABLE t AS SELECT * FROM u
CREATE TABLE IF NOT EXISTS t AS SELECT a, COUNT(*) AS n FROM u GROUP BY a
CREATE TABLE t (a REFERENCES u, b REFERENCES v (x, y) DEFERRABLE INITIALLY DEFERRED)
CREATE TABLE t (a REFERENCES u (b) ON DELETE RESTRICT ON UPDATE NO ACTION, c REFERENCES u ON DELETE SET DEFAULT)
CREATE TABLE "my table" ("my column" TEXT, [other] INT, `third` INT NULL)
CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES u (b) DEFERRABLE)
CREATE TABLE comments ( id INTEGER PRIMARY KEY, body TEXT NOT NULL CHECK (length(body) > 0), parent INTEGER REFERENCES comments (id) )
CREATE INDEX i ON t (a)
CREATE UNIQUE INDEX IF NOT EXISTS main.i ON t (a, b DESC)
CREATE INDEX i ON t (lower(name), a COLLATE NOCASE ASC)
CREATE INDEX active_users ON users (email) WHERE active = 1
CREATE VIEW v AS SELECT * FROM t
CREATE VIEW IF NOT EXISTS v (a, b) AS SELECT x, y FROM t WHERE z > 0
CREATE TEMP VIEW v AS SELECT 1 UNION SELECT 2
CREATE VIEW monthly AS SELECT strftime('%Y-%m', date) AS month, SUM(total) AS revenue FROM orders GROUP BY month
CREATE VIEW v AS WITH x AS (SELECT 1) SELECT * FROM x
