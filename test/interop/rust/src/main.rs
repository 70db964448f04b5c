// Goal: what the official Rust client writes by QWP is what it reads by QWP: a row of every type, a row of NULLs, and
// 100,000 rows in several messages, with and without compression; parameters come back as they were bound;
// errors reach the caller, and the connection goes on.
//
//   qwp-client 127.0.0.1:9000

use questdb::egress::column::ColumnView;
use questdb::egress::reader::Reader;
use questdb::ingress::{AckLevel, Sender, TimestampMicros, TimestampNanos};
use std::net::Ipv4Addr;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const FIRST: i64 = 1_704_067_200_000_000;
const MANY: i64 = 100_000;
const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    let address = std::env::args().nth(1).expect("the server's address");
    write(&address)?;
    for options in ["compression=raw;", "compression=zstd;"] {
        let mut reader = Reader::from_conf(format!("ws::addr={address};{options}"))?;
        read_every_type(&mut reader)?;
        read_many(&mut reader)?;
        parameters(&mut reader)?;
        errors(&mut reader)?;
        println!("ok {options}");
    }
    Ok(())
}

fn long256() -> [u8; 32] {
    std::array::from_fn(|index| index as u8)
}

fn write(address: &str) -> Result<()> {
    let mut sender = Sender::from_conf(format!("ws::addr={address};"))?;
    let mut buffer = sender.new_buffer();
    buffer
        .table("rust_every")?
        .symbol("k", "one")?
        .column_bool("b", true)?
        .column_i8("i8", -8)?
        .column_i16("i16", -16)?
        .column_i32("i32", -32)?
        .column_i64("i64", -64)?
        .column_f32("f32", 0.5)?
        .column_f64("f64", 2.5)?
        .column_str("s", "größe")?
        .column_ts("micros", TimestampMicros::new(FIRST + 1))?
        .column_ts("nanos", TimestampNanos::new(FIRST * 1000 + 1))?
        .column_date("day", FIRST / 1000)?
        .column_uuid("u", 0x2222, 0x1111)?
        .column_long256("l", &long256())?
        .column_ipv4("ip", Ipv4Addr::new(10, 0, 0, 1))?
        .column_char("c", 'x' as u16)?
        .column_binary("bin", &[1, 0, 255])?
        .column_geohash("g", 0b10110, 5)?
        .column_dec64("d64", "12.34")?
        .column_dec128("d128", "-1234567890123456789.5")?
        .column_dec("d256", "123456789012345678901234567890123456789012.25")?
        .column_arr("a", &vec![1.0, 2.5, -3.0])?
        .at(TimestampMicros::new(FIRST))?;
    buffer.table("rust_every")?.column_i64("i64", 1)?.at(TimestampMicros::new(FIRST + 1_000_000))?;
    sender.flush(&mut buffer)?;
    for row in 0..MANY {
        buffer
            .table("rust_many")?
            .symbol("k", format!("k{}", row % 5000))?
            .column_i64("v", row)?
            .at(TimestampMicros::new(FIRST + row))?;
        if row % 10_000 == 9_999 {
            sender.flush(&mut buffer)?;
        }
    }
    sender.wait(AckLevel::Ok, TIMEOUT)?;
    Ok(())
}

const EVERY: &str = "select k, b, i8, i16, i32, i64, f32, f64, s, micros, nanos, day, u, l, ip, c, bin, g, d64, d128, \
                     d256, a, timestamp from rust_every";

fn read_every_type(reader: &mut Reader) -> Result<()> {
    let mut cursor = reader.execute(EVERY)?;
    let mut rows = 0;
    while let Some(view) = cursor.next_batch()? {
        for row in 0..view.row_count() {
            let texts: Vec<String> = (0..23).map(|column| Ok(text(&view.column(column)?, row))).collect::<Result<_>>()?;
            assert_eq!(texts, if rows == 0 { first_row() } else { second_row() }, "row {rows}");
            rows += 1;
        }
    }
    assert_eq!(rows, 2, "rows of rust_every");
    Ok(())
}

fn first_row() -> Vec<String> {
    let bytes: Vec<u8> = long256().to_vec();
    [
        "one", "true", "-8", "-16", "-32", "-64", "0.5", "2.5", "größe", "µ1704067200000001", "n1704067200000000001",
        "ms1704067200000", "uuid 1111 2222", &format!("{bytes:?}"), "10.0.0.1", "c120", "[1, 0, 255]", "10110 of 5",
        "1234 e-2", "-12345678901234567895 e-1", "d256 e-2 233", "[3] 1 2.5 -3", "µ1704067200000000",
    ]
    .map(String::from)
    .to_vec()
}

/// NULLs; BOOLEAN, BYTE, SHORT and CHAR have none.
fn second_row() -> Vec<String> {
    let values = [(1, "false"), (2, "0"), (3, "0"), (5, "1"), (15, "c0"), (22, "µ1704067201000000")];
    (0..23)
        .map(|column| values.iter().find(|(place, _)| *place == column).map_or("NULL", |(_, text)| *text).to_string())
        .collect()
}

fn text(column: &ColumnView, row: usize) -> String {
    let shown = |is_null: bool, text: &dyn Fn() -> String| if is_null { "NULL".into() } else { text() };
    match column {
        ColumnView::Boolean(c) => shown(c.is_null(row), &|| (c.value(row) != 0).to_string()),
        ColumnView::Byte(c) => shown(c.is_null(row), &|| c.value(row).to_string()),
        ColumnView::Short(c) => shown(c.is_null(row), &|| c.value(row).to_string()),
        ColumnView::Int(c) => shown(c.is_null(row), &|| c.value(row).to_string()),
        ColumnView::Long(c) => shown(c.is_null(row), &|| c.value(row).to_string()),
        ColumnView::Float(c) => shown(c.is_null(row), &|| c.value(row).to_string()),
        ColumnView::Double(c) => shown(c.is_null(row), &|| c.value(row).to_string()),
        ColumnView::Symbol(c) => c.resolve(row).unwrap_or("NULL").into(),
        ColumnView::Varchar(c) => c.value(row).unwrap_or("NULL").into(),
        ColumnView::Timestamp(c) => shown(c.is_null(row), &|| format!("µ{}", c.value(row))),
        ColumnView::TimestampNanos(c) => shown(c.is_null(row), &|| format!("n{}", c.value(row))),
        ColumnView::Date(c) => shown(c.is_null(row), &|| format!("ms{}", c.value(row))),
        ColumnView::Uuid(c) => shown(c.is_null(row), &|| words(c.value(row))),
        ColumnView::Long256(c) => shown(c.is_null(row), &|| format!("{:?}", c.value(row))),
        ColumnView::Char(c) => shown(c.is_null(row), &|| format!("c{}", c.value(row))),
        ColumnView::Ipv4(c) => shown(c.is_null(row), &|| Ipv4Addr::from(c.value(row)).to_string()),
        ColumnView::Binary(c) => c.value(row).map_or("NULL".into(), |bytes| format!("{bytes:?}")),
        ColumnView::Geohash(c) => shown(c.is_null(row), &|| format!("{:b} of {}", c.value(row), c.precision_bits())),
        ColumnView::Decimal64(c) => shown(c.is_null(row), &|| format!("{} e-{}", c.value(row), c.scale())),
        ColumnView::Decimal128(c) => shown(c.is_null(row), &|| format!("{} e-{}", c.value(row), c.scale())),
        ColumnView::Decimal256(c) => shown(c.is_null(row), &|| format!("d256 e-{} {}", c.scale(), c.value(row)[0])),
        ColumnView::DoubleArray(c) => shown(c.is_null(row), &|| {
            let values: Vec<String> = (0..c.element_count(row)).map(|at| c.element(row, at).unwrap().to_string()).collect();
            format!("{:?} {}", c.shape(row).unwrap(), values.join(" "))
        }),
        other => format!("unexpected type {:?}", other.kind()),
    }
}

/// The high and the low word.
fn words(bytes: &[u8; 16]) -> String {
    let high = u64::from_be_bytes(bytes[..8].try_into().unwrap());
    let low = u64::from_be_bytes(bytes[8..].try_into().unwrap());
    format!("uuid {high:x} {low:x}")
}

fn read_many(reader: &mut Reader) -> Result<()> {
    let mut cursor = reader.execute("select k, v from rust_many")?;
    let mut expected = 0;
    while let Some(view) = cursor.next_batch()? {
        let (k, v) = (view.column(0)?, view.column(1)?);
        for row in 0..view.row_count() {
            assert_eq!(text(&v, row), expected.to_string(), "the value of row {expected}");
            assert_eq!(text(&k, row), format!("k{}", expected % 5000), "the symbol of row {expected}");
            expected += 1;
        }
    }
    assert_eq!(expected, MANY, "rows of rust_many");
    Ok(())
}

fn parameters(reader: &mut Reader) -> Result<()> {
    let mut cursor = reader
        .prepare("select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15")
        .bind_bool(true)
        .bind_i8(-8)
        .bind_i16(-16)
        .bind_i32(-32)
        .bind_i64(-64)
        .bind_f32(0.5)
        .bind_f64(2.5)
        .bind_varchar("größe")
        .bind_timestamp_micros(5)
        .bind_timestamp_nanos(7)
        .bind_date_millis(9)
        .bind_long256(long256())
        .bind_char('x' as u16)
        .bind_decimal64(1234, 2)
        .bind_null_varchar()
        .execute()?;
    let view = cursor.next_batch()?.expect("a row");
    let texts: Vec<String> = (0..15).map(|column| Ok(text(&view.column(column)?, 0))).collect::<Result<_>>()?;
    let bytes = format!("{:?}", long256().to_vec());
    let expected = [
        "true", "-8", "-16", "-32", "-64", "0.5", "2.5", "größe", "µ5", "n7", "ms9", &bytes, "c120",
        "1234 e-2", "NULL",
    ];
    assert_eq!(texts, expected, "parameters");
    // A cursor that is dropped before its end closes the connection.
    while cursor.next_batch()?.is_some() {}
    Ok(())
}

fn errors(reader: &mut Reader) -> Result<()> {
    let error = match reader.execute("select * from nowhere").and_then(|mut cursor| cursor.next_batch().map(|_| ())) {
        Ok(()) => panic!("a statement on a missing table is accepted"),
        Err(error) => error.to_string(),
    };
    assert!(error.contains("nowhere"), "{error}");
    let mut cursor = reader.execute("select count() from rust_many where k = 'k7'")?;
    let view = cursor.next_batch()?.expect("a row");
    assert_eq!(text(&view.column(0)?, 0), (MANY / 5000).to_string(), "a statement after an error");
    while cursor.next_batch()?.is_some() {}
    Ok(())
}
