// Goal: a JDBC sink connector works unmodified. What such a sink does is done here by PostgreSQL's driver, step by step:
// auto.create, batches, typed and untyped NULL, auto.evolve, retries, update counts that add up; then what else drivers
// of this kind use: rewritten batches, fetch size within a transaction, binary transfer, cancel and time-outs.
// Usage: java -cp postgresql.jar JdbcSink.java jdbc:postgresql://host:port/qdb user password

import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Time;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Calendar;
import java.util.List;
import java.util.Properties;
import java.util.TimeZone;

public class JdbcSink {
  static final Calendar UTC = Calendar.getInstance(TimeZone.getTimeZone("UTC"));
  static final int BATCH = 3000;
  static int failures = 0;

  static void expect(String name, Object wanted, Object found) {
    if (String.valueOf(wanted).equals(String.valueOf(found))) return;
    failures++;
    System.out.println("FAILED " + name + ": wanted " + wanted + ", found " + found);
  }

  static Connection open(String[] args, String... pairs) throws SQLException {
    Properties properties = new Properties();
    properties.put("user", args[1]);
    properties.put("password", args[2]);
    for (int index = 0; index < pairs.length; index += 2) properties.put(pairs[index], pairs[index + 1]);
    return DriverManager.getConnection(args[0], properties);
  }

  public static void main(String[] args) throws Exception {
    for (String rewrite : new String[] {"false", "true"}) {
      try (Connection c = open(args, "reWriteBatchedInserts", rewrite)) {
        sink(c, "orders-topic-" + rewrite, rewrite.equals("true"));
      }
    }
    try (Connection c = open(args)) {
      failingBatch(c);
    }
    for (String mode : new String[] {"simple", "extended", "extendedForPrepared", "extendedCacheEverything"}) {
      try (Connection c = open(args, "preferQueryMode", mode, "prepareThreshold", "-1")) {
        fetches(c, mode);
      }
    }
    try (Connection c = open(args)) {
      ownRows(c);
      timeouts(c);
      types(c);
    }
    System.out.println(failures == 0 ? "1 passed, 0 failed" : "0 passed, 1 failed");
    System.exit(failures == 0 ? 0 : 1);
  }

  // THE SINK --------------------------------------------------------------------------------------------------------

  static void sink(Connection c, String topic, boolean rewrites) throws SQLException {
    String table = "\"" + topic + "\"";
    run(c, "DROP TABLE IF EXISTS " + table);
    expect("isValid", true, c.isValid(5));
    c.setAutoCommit(false);
    expect("exists before", false, exists(c, topic));
    run(c, "CREATE TABLE " + table + " (\n\"ts\" TIMESTAMP NOT NULL,\n\"device\" TEXT NOT NULL,\n\"temp\" DOUBLE PRECISION NULL,\n"
        + "\"n32\" INT NOT NULL,\n\"n64\" BIGINT NOT NULL,\n\"ok\" BOOLEAN NOT NULL,\n\"note\" TEXT NULL,\n\"n16\" SMALLINT NULL,\n"
        + "\"f32\" REAL NULL,\n\"amount\" DECIMAL NULL,\n\"day\" DATE NULL,\n\"at\" TIME NULL,\n\"raw\" BYTEA NULL)");
    c.commit();
    expect("exists after", true, exists(c, topic));
    expect("columns", "[ts, device, temp, n32, n64, ok, note, n16, f32, amount, day, at, raw]", columns(c, topic));
    try (ResultSet keys = c.getMetaData().getPrimaryKeys(null, null, topic)) {
      expect("primary keys", false, keys.next());
    }
    String insert = "INSERT INTO " + table + "(\"ts\",\"device\",\"temp\",\"n32\",\"n64\",\"ok\",\"note\",\"n16\",\"f32\",\"amount\","
        + "\"day\",\"at\",\"raw\") VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)";
    for (int round = 0; round < 3; round++) {
      try (PreparedStatement s = c.prepareStatement(insert)) {
        for (int row = round * BATCH; row < (round + 1) * BATCH; row++) bind(s, row);
        counted("round " + round, s.executeBatch(), BATCH, rewrites);
      }
      c.commit();
    }
    expect("rows", 3 * BATCH, one(c, "SELECT count(*) FROM " + table));
    expect("sum", sum(3 * BATCH), one(c, "SELECT sum(\"n64\") FROM " + table));
    expect("nulls", 3 * BATCH / 2, one(c, "SELECT count(*) FROM " + table + " WHERE \"temp\" IS NULL"));
    expect("micros", "2024-01-01 00:00:02.000123", one(c, "SELECT \"ts\" FROM " + table + " WHERE \"n32\" = 2"));
    expect("day", "2024-01-01", one(c, "SELECT \"day\" FROM " + table + " WHERE \"n32\" = 2"));
    expect("time", "01:01:01", one(c, "SELECT \"at\" FROM " + table + " WHERE \"n32\" = 2"));
    expect("days", 3 * BATCH, one(c, "SELECT count(*) FROM " + table + " WHERE \"day\" = '2024-01-01'"));
    expect("designated", "ts", one(c, "SELECT designatedTimestamp FROM tables() WHERE table_name = '" + topic + "'"));
    run(c, "ALTER TABLE " + table + " ADD \n\"added\" TEXT NULL");
    c.commit();
    expect("evolved", true, columns(c, topic).contains("added"));
    String qualified = "INSERT INTO \"qdb\".\"public\"." + table + " (\"ts\",\"device\",\"n32\",\"n64\",\"ok\",\"added\") VALUES(?,?,?,?,?,?)";
    try (PreparedStatement s = c.prepareStatement(qualified)) {
      for (int row = 0; row < 10; row++) {
        s.setTimestamp(1, new Timestamp(1_704_067_200_000L + row), UTC);
        s.setString(2, "later");
        s.setInt(3, row);
        s.setLong(4, row);
        s.setBoolean(5, true);
        s.setString(6, "text " + row);
        s.addBatch();
      }
      counted("evolved batch", s.executeBatch(), 10, rewrites);
    }
    c.rollback();
    expect("rolled back", 3 * BATCH, one(c, "SELECT count(*) FROM " + table));
    c.setAutoCommit(true);
  }

  static void bind(PreparedStatement s, int row) throws SQLException {
    Timestamp ts = new Timestamp(1_704_067_200_000L + row * 1000L);
    ts.setNanos(123_000);
    s.setTimestamp(1, ts, UTC);
    s.setString(2, "device-" + row % 7);
    // The sink says setObject(index, null): its type changes from row to row, and the driver prepares anew.
    if (row % 2 == 0) s.setObject(3, null);
    else s.setDouble(3, row * 0.5);
    s.setInt(4, row);
    s.setLong(5, row);
    s.setBoolean(6, row % 2 == 0);
    if (row % 3 == 0) s.setObject(7, null);
    else s.setString(7, "it's \"quoted\" \\ " + row);
    s.setShort(8, (short) row);
    s.setFloat(9, row);
    s.setBigDecimal(10, new BigDecimal("12.50"));
    s.setDate(11, new java.sql.Date(1_704_067_200_000L), UTC);
    s.setTime(12, new Time(3_661_000L), UTC);
    s.setBytes(13, new byte[] {0, 1, (byte) row});
    s.addBatch();
  }

  /** The sink adds counts up and fails when the sum is wrong; a rewritten batch has SUCCESS_NO_INFO. */
  static void counted(String name, int[] counts, int wanted, boolean rewrites) {
    int sum = 0;
    for (int count : counts) {
      if (count == Statement.SUCCESS_NO_INFO && rewrites) sum++;
      else sum += count;
    }
    expect(name + " counts", wanted, sum);
  }

  static long sum(long rows) {
    return rows * (rows - 1) / 2;
  }

  static boolean exists(Connection c, String table) throws SQLException {
    DatabaseMetaData data = c.getMetaData();
    try (ResultSet rows = data.getTables(null, "%", table, new String[] {"TABLE", "PARTITIONED TABLE"})) {
      return rows.next();
    }
  }

  static List<String> columns(Connection c, String table) throws SQLException {
    List<String> names = new ArrayList<>();
    try (ResultSet rows = c.getMetaData().getColumns(null, null, table, null)) {
      while (rows.next()) names.add(rows.getString("COLUMN_NAME"));
    }
    return names;
  }

  static void run(Connection c, String sql) throws SQLException {
    try (Statement s = c.createStatement()) {
      s.executeUpdate(sql);
    }
  }

  static String one(Connection c, String sql) throws SQLException {
    try (Statement s = c.createStatement(); ResultSet rows = s.executeQuery(sql)) {
      return rows.next() ? rows.getString(1) : null;
    }
  }

  /** One bad row of a batch: nothing of it is stored, the connection goes on, and so does a retry. */
  static void failingBatch(Connection c) throws SQLException {
    run(c, "drop table if exists sink_bad");
    run(c, "create table sink_bad (ts timestamp, v int) timestamp(ts) partition by day");
    c.setAutoCommit(false);
    try (PreparedStatement s = c.prepareStatement("insert into sink_bad values (?::timestamp, ?)")) {
      for (int row = 0; row < 100; row++) {
        s.setString(1, row == 60 ? "nonsense" : "2024-01-01T00:00:00Z");
        s.setInt(2, row);
        s.addBatch();
      }
      try {
        s.executeBatch();
        expect("a bad row", "an error", "none");
      } catch (BatchUpdateException e) {
        expect("state of a bad row", "22007", e.getSQLState());
      }
    }
    c.rollback();
    expect("nothing of it", 0, one(c, "select count(*) from sink_bad"));
    run(c, "insert into sink_bad values ('2024-01-01', 1)");
    c.commit();
    expect("the retry", 1, one(c, "select count(*) from sink_bad"));
    c.setAutoCommit(true);
  }

  // READING ---------------------------------------------------------------------------------------------------------

  static void fetches(Connection c, String mode) throws SQLException {
    c.setAutoCommit(false);
    try (PreparedStatement s = c.prepareStatement(
        "select x, x::int i, x / 2.0 d, cast(x as timestamp) ts, 't' || x t, x > 50 b from long_sequence(10000) where x > ?")) {
      for (int size : new int[] {0, 1, 7, 1000}) {
        s.setFetchSize(size);
        s.setLong(1, size == 1 ? 9900 : 100);
        long rows = 0;
        long total = 0;
        try (ResultSet result = s.executeQuery()) {
          while (result.next()) {
            rows++;
            total += result.getLong(1);
            long x = result.getLong(1);
            if (result.getInt(2) != x || result.getDouble(3) != x / 2.0 || !result.getString(5).equals("t" + x)
                || !result.getBoolean(6) || result.getTimestamp(4, UTC).getTime() != x / 1000) {
              expect("values of " + mode, x, result.getString(2) + result.getString(3) + result.getString(4));
              return;
            }
          }
        }
        expect(mode + " rows, fetch size " + size, size == 1 ? 100 : 9900, rows);
        expect(mode + " total", size == 1 ? 995_050 : 50_005_000 - 5050, total);
      }
    }
    c.commit();
    c.setAutoCommit(true);
  }

  static void ownRows(Connection c) throws SQLException {
    run(c, "drop table if exists sink_own");
    run(c, "create table sink_own (ts timestamp, v int) timestamp(ts) partition by day");
    c.setAutoCommit(false);
    run(c, "insert into sink_own values ('2024-01-01', 1), ('2024-01-02', 2)");
    expect("own rows", 3, one(c, "select sum(v) from sink_own"));
    c.rollback();
    expect("forgotten", 0, one(c, "select count(*) from sink_own"));
    c.setAutoCommit(true);
  }

  static void timeouts(Connection c) throws SQLException {
    try (Statement s = c.createStatement()) {
      s.setQueryTimeout(1);
      s.executeQuery("select count(*) from long_sequence(1000000000) where rnd_double() > 2");
      expect("time-out", "an error", "none");
    } catch (SQLException e) {
      expect("state of a time-out", "57014", e.getSQLState());
    }
    expect("afterwards", 1, one(c, "select 1"));
  }

  static void types(Connection c) throws SQLException {
    try (PreparedStatement s = c.prepareStatement("select * from \"orders-topic-false\" where \"device\" = ?")) {
      ResultSetMetaData data = s.getMetaData();
      StringBuilder found = new StringBuilder();
      for (int index = 1; index <= data.getColumnCount(); index++) found.append(data.getColumnTypeName(index)).append(' ');
      expect("types", "timestamp varchar float8 int4 int8 bool varchar int2 float4 numeric date time bytea varchar",
          found.toString().trim());
      expect("parameters", Types.VARCHAR, s.getParameterMetaData().getParameterType(1));
    }
    try (PreparedStatement s = c.prepareStatement("select count(*) from \"orders-topic-false\" where \"n64\" = any(?)")) {
      s.setArray(1, c.createArrayOf("int8", new Long[] {1L, 5L, 9L}));
      try (ResultSet rows = s.executeQuery()) {
        rows.next();
        expect("any", 3, rows.getString(1));
      }
    }
  }
}
