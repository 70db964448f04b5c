// Goal: PostgreSQL's JDBC driver reads the catalog: every question of DatabaseMetaData that tools ask is answered.
// Usage: java -cp postgresql.jar JdbcMetadata.java jdbc:postgresql://host:port/qdb user password

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;

public class JdbcMetadata {
  interface Question {
    ResultSet ask() throws SQLException;
  }

  static int failures = 0;

  /** At least so many rows, or exactly none when 0 is said. */
  static void ask(String name, int rowsMin, Question question) {
    try (ResultSet rows = question.ask()) {
      int count = 0;
      while (rows.next()) count++;
      if (rowsMin == 0 ? count != 0 : count < rowsMin) fail(name, "rows: " + count);
    } catch (SQLException e) {
      fail(name, e.getMessage());
    }
  }

  static void fail(String name, String why) {
    failures++;
    System.out.println("FAILED " + name + ": " + why);
  }

  static void expect(String name, Object wanted, Object found) {
    if (!wanted.equals(found)) fail(name, "wanted " + wanted + ", found " + found);
  }

  public static void main(String[] args) throws Exception {
    for (String mode : new String[] {"extended", "simple"}) {
      Properties properties = new Properties();
      properties.put("user", args[1]);
      properties.put("password", args[2]);
      properties.put("preferQueryMode", mode);
      try (Connection c = DriverManager.getConnection(args[0], properties)) {
        try (Statement s = c.createStatement()) {
          s.execute("drop table if exists \"jdbc-meta\"");
          s.execute("create table \"jdbc-meta\" (ts timestamp, name symbol, amount decimal(10,2), price double, flag boolean,"
              + " id uuid, list double[]) timestamp(ts) partition by day wal");
        }
        check(c);
      }
    }
    System.out.println(failures == 0 ? "1 passed, 0 failed" : "0 passed, 1 failed");
    System.exit(failures == 0 ? 0 : 1);
  }

  static void check(Connection c) throws SQLException {
    String t = "jdbc-meta";
    DatabaseMetaData d = c.getMetaData();
    expect("product", "PostgreSQL", d.getDatabaseProductName());
    expect("schema", "public", c.getSchema());
    expect("catalog", "qdb", c.getCatalog());
    expect("isolation", Connection.TRANSACTION_READ_COMMITTED, c.getTransactionIsolation());
    if (d.getSQLKeywords().isEmpty()) fail("keywords", "none");
    expect("name length", 63, d.getMaxColumnNameLength());
    ask("catalogs", 1, d::getCatalogs);
    ask("schemas", 3, d::getSchemas);
    ask("table types", 3, d::getTableTypes);
    ask("tables", 1, () -> d.getTables(null, "public", t, new String[] {"TABLE"}));
    ask("all tables", 2, () -> d.getTables(null, null, "%", null));
    ask("system tables", 1, () -> d.getTables(null, "pg_catalog", "pg_class", new String[] {"SYSTEM TABLE"}));
    ask("no table", 0, () -> d.getTables(null, null, "nope", null));
    ask("columns", 7, () -> d.getColumns(null, "public", t, "%"));
    ask("primary keys", 0, () -> d.getPrimaryKeys(null, "public", t));
    ask("imported keys", 0, () -> d.getImportedKeys(null, "public", t));
    ask("exported keys", 0, () -> d.getExportedKeys(null, "public", t));
    ask("indexes", 0, () -> d.getIndexInfo(null, "public", t, false, true));
    ask("best row", 0, () -> d.getBestRowIdentifier(null, "public", t, DatabaseMetaData.bestRowSession, true));
    ask("table rights", 1, () -> d.getTablePrivileges(null, "public", t));
    ask("column rights", 7, () -> d.getColumnPrivileges(null, "public", t, "%"));
    ask("types", 50, d::getTypeInfo);
    ask("functions", 1, () -> d.getFunctions(null, null, "version"));
    ask("function columns", 2, () -> d.getFunctionColumns(null, null, "left", "%"));
    ask("procedures", 0, () -> d.getProcedures(null, null, "%"));
    // Those of the rows of the two tables, as PostgreSQL lists them.
    ask("user types", 2, () -> d.getUDTs(null, null, "%", null));
    try (ResultSet columns = d.getColumns(null, "public", t, "amount")) {
      columns.next();
      expect("type", "numeric", columns.getString("TYPE_NAME"));
      expect("size", 10, columns.getInt("COLUMN_SIZE"));
      expect("digits", 2, columns.getInt("DECIMAL_DIGITS"));
      expect("place", 3, columns.getInt("ORDINAL_POSITION"));
    }
  }
}
