// Measures the catalog calls of PostgreSQL's JDBC driver in a database of 200 tables, ours beside a PostgreSQL: medians in
// milliseconds, one column a server, each call in turn at each of them. Tables that are missing are made, and stay.
// Usage: java -cp postgresql.jar JdbcCatalogBench.java [--rounds n] url user password [url user password]

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

public class JdbcCatalogBench {
  static final int TABLES = 200;
  static final int WARM_UP = 5;

  interface Call {
    ResultSet ask(DatabaseMetaData data, String table) throws SQLException;
  }

  static Map<String, Call> calls() {
    Map<String, Call> calls = new LinkedHashMap<>();
    calls.put("getTables", (d, t) -> d.getTables(null, null, "%", new String[] {"TABLE"}));
    calls.put("getTables, all types", (d, t) -> d.getTables(null, null, "%", null));
    calls.put("getColumns, one table", (d, t) -> d.getColumns(null, "public", t, "%"));
    calls.put("getColumns, all tables", (d, t) -> d.getColumns(null, "public", "catalog_bench_%", "%"));
    calls.put("getColumns, everything", (d, t) -> d.getColumns(null, null, "%", "%"));
    calls.put("getPrimaryKeys, one table", (d, t) -> d.getPrimaryKeys(null, "public", t));
    calls.put("getPrimaryKeys, all", (d, t) -> d.getPrimaryKeys(null, null, null));
    calls.put("getIndexInfo", (d, t) -> d.getIndexInfo(null, "public", t, false, true));
    calls.put("getImportedKeys", (d, t) -> d.getImportedKeys(null, "public", t));
    calls.put("getExportedKeys", (d, t) -> d.getExportedKeys(null, "public", t));
    calls.put("getCrossReference", (d, t) -> d.getCrossReference(null, "public", t, null, "public", "catalog_bench_0"));
    calls.put("getBestRowIdentifier", (d, t) -> d.getBestRowIdentifier(null, "public", t, 1, true));
    calls.put("getTablePrivileges", (d, t) -> d.getTablePrivileges(null, "public", t));
    calls.put("getColumnPrivileges", (d, t) -> d.getColumnPrivileges(null, "public", t, "%"));
    calls.put("getTypeInfo", (d, t) -> d.getTypeInfo());
    calls.put("getUDTs", (d, t) -> d.getUDTs(null, null, "%", null));
    calls.put("getSchemas", (d, t) -> d.getSchemas());
    calls.put("getProcedures", (d, t) -> d.getProcedures(null, null, "%"));
    calls.put("getFunctions", (d, t) -> d.getFunctions(null, "pg_catalog", "a%"));
    return calls;
  }

  public static void main(String[] args) throws Exception {
    int first = args.length > 1 && args[0].equals("--rounds") ? 2 : 0;
    int rounds = first == 0 ? 20 : Integer.parseInt(args[1]);
    List<Connection> servers = new ArrayList<>();
    for (int index = first; index + 2 < args.length; index += 3) {
      servers.add(DriverManager.getConnection(args[index], args[index + 1], args[index + 2]));
    }
    for (Connection server : servers) createTables(server);
    for (Map.Entry<String, Call> call : calls().entrySet()) {
      StringBuilder line = new StringBuilder(String.format("%-28s", call.getKey()));
      double[][] times = new double[servers.size()][rounds];
      int[] rows = new int[servers.size()];
      for (int round = -WARM_UP; round < rounds; round++) {
        for (int server = 0; server < servers.size(); server++) {
          DatabaseMetaData data = servers.get(server).getMetaData();
          // Another table each time, as whoever walks a schema asks: texts hardly come twice.
          String table = "catalog_bench_" + Math.floorMod(round * 7, TABLES);
          long start = System.nanoTime();
          rows[server] = count(call.getValue().ask(data, table));
          if (round >= 0) times[server][round] = (System.nanoTime() - start) / 1e6;
        }
      }
      for (int server = 0; server < servers.size(); server++) {
        Arrays.sort(times[server]);
        line.append(String.format("%10.2f ms %6d rows", times[server][rounds / 2], rows[server]));
      }
      if (servers.size() == 2) line.append(String.format("%8.1f x", times[0][rounds / 2] / times[1][rounds / 2]));
      System.out.println(line);
    }
    for (Connection server : servers) server.close();
  }

  static int count(ResultSet result) throws SQLException {
    try (result) {
      int rows = 0;
      while (result.next()) rows++;
      return rows;
    }
  }

  static void createTables(Connection server) throws SQLException {
    try (Statement statement = server.createStatement()) {
      for (int table = 0; table < TABLES; table++) {
        StringBuilder columns = new StringBuilder("id bigint primary key");
        String[] types = {"text", "double precision", "timestamp"};
        for (int column = 1; column < 10; column++) columns.append(", c" + column + " " + types[column % 3]);
        statement.execute("create table if not exists catalog_bench_" + table + " (" + columns + ")");
      }
    }
  }
}
