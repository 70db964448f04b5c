// Exports as parquet-mr, Spark's reader, sees them: every codec that it knows, versions 1 and 2, pages of parts and pages made
// of rows. All files have to hold the same rows, and those that /exec sums up.
//
// usage: java -cp 'lib/*' ReadExports.java HTTP_PORT     (the libraries of parquet-mr.xml)

import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.conf.PlainParquetConfiguration;
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.io.ColumnIOFactory;
import org.apache.parquet.io.LocalInputFile;

public class ReadExports {
  static final HttpClient client = HttpClient.newHttpClient();
  static String base;
  static long rows;
  static long sum;
  static long digest;

  static byte[] get(String path, String... parameters) throws Exception {
    var url = new StringBuilder(base + path);
    for (int at = 0; at < parameters.length; at += 2) {
      url.append(at == 0 ? '?' : '&').append(parameters[at]).append('=');
      url.append(URLEncoder.encode(parameters[at + 1], StandardCharsets.UTF_8));
    }
    var answer = client.send(HttpRequest.newBuilder(URI.create(url.toString())).build(), BodyHandlers.ofByteArray());
    if (answer.statusCode() != 200) throw new IllegalStateException(new String(answer.body(), StandardCharsets.UTF_8));
    return answer.body();
  }

  static void read(Path file) throws Exception {
    rows = sum = digest = 0;
    var options = ParquetReadOptions.builder(new PlainParquetConfiguration()).usePageChecksumVerification(true).build();
    try (var reader = ParquetFileReader.open(new LocalInputFile(file), options)) {
      var schema = reader.getFooter().getFileMetaData().getSchema();
      for (var pages = reader.readNextRowGroup(); pages != null; pages = reader.readNextRowGroup()) {
        var records = new ColumnIOFactory().getColumnIO(schema).getRecordReader(pages, new GroupRecordConverter(schema));
        for (long row = 0; row < pages.getRowCount(); row++, rows++) {
          var group = records.read();
          sum += group.getInteger("i", 0);
          digest = digest * 31 + group.toString().hashCode();
        }
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    base = "http://127.0.0.1:" + arguments[0];
    for (var part : new String[] {"create table mr as (%s) timestamp(ts) partition by month", "insert into mr %s"}) {
      var query = "select timestamp_sequence('2024-01-01', 1000000) ts, rnd_symbol('a','b','c',null) s, x::int i, x % 900 h,"
          + " case when x % 7 = 0 then null else x * 1000003 end l, case when x % 5 = 0 then null else x / 3.0 end d,"
          + " rnd_str(3,9,5) t, concat('k', x % 50) k, x % 2 = 0 b, rnd_uuid4() u, x::date dt from long_sequence(25000)";
      get("/exec", "query", String.format(part, query));
      get("/exec", "query", "checkpoint");
    }
    var answer = new String(get("/exec", "query", "select sum(i) from mr", "nm", "true"), StandardCharsets.UTF_8);
    var file = Files.createTempFile("penstock-", ".parquet");
    try {
      Long first = null;
      int files = 0;
      for (var codec : new String[] {"NONE", "SNAPPY", "GZIP", "LZ4", "ZSTD"})
        for (var version : new String[] {"1", "2"})
          for (var query : new String[] {"mr", "select * from mr limit 50000"}) {
            var name = codec + " of version " + version + ", " + query;
            Files.write(file, get("/exp", "query", query, "fmt", "parquet", "compression_codec", codec,
                "parquet_version", version));
            read(file);
            if (first == null) first = digest;
            if (rows != 50000 || digest != first || !answer.contains("[[" + sum + "]]"))
              throw new IllegalStateException(name + ": " + rows + " rows, sum " + sum + ", expected " + answer);
            files++;
          }
      System.out.println(files + " files hold the same rows");
    } finally {
      Files.delete(file);
    }
  }
}
