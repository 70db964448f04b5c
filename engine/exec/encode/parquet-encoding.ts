// Options of an exported Parquet file (codec, level, page and row group size, ..), as parameters of /exp and options of
// COPY set them; their defaults and checks.

export type ParquetCodec = 'NONE' | 'SNAPPY' | 'GZIP' | 'LZ4' | 'ZSTD' | 'BROTLI' | 'LZO'

export interface ParquetEncoding {
  readonly kind: 'parquet'
  readonly codec: ParquetCodec
  /** 0 for codecs without levels. */
  readonly level: number
  readonly rowGroupRows: number
  readonly pageBytes: number
  readonly statistics: boolean
  /** 2: version 2 data pages and delta encodings. */
  readonly version: 1 | 2
  /** Arrays as bytes instead of nested lists. */
  readonly rawArrays: boolean
  /** Columns that get a Bloom filter in each row group, and the accepted false positive rate. */
  readonly bloom: { readonly columns: readonly string[]; readonly falseShare: number } | null
  /**
   * For files of Iceberg tables: the field ids of each column, which are its own and those of the elements of its
   * lists, the outer ones first. Pages then are plain or dictionary-encoded, which all readers support.
   */
  readonly fieldIds?: readonly (readonly number[])[]
}

/** The defaults. */
export const parquetDefaults: ParquetEncoding = {
  kind: 'parquet',
  codec: 'SNAPPY',
  level: 0,
  rowGroupRows: 1_048_576,
  pageBytes: 1_048_576,
  statistics: true,
  version: 1,
  rawArrays: false,
  bloom: null,
}

/** Default false positive rate of Bloom filters. */
export const falsePositiveRateDefault = 0.01

interface LevelRange {
  /** The name in error messages. */
  readonly name: string
  readonly min: number
  readonly max: number
  readonly initial: number
}

/** In the order of error messages. */
const parquetCodecs: Readonly<Record<ParquetCodec, LevelRange | null>> = {
  NONE: null,
  SNAPPY: null,
  GZIP: { name: 'GZIP', min: 1, max: 9, initial: 6 },
  LZ4: null,
  ZSTD: { name: 'ZSTD', min: 1, max: 22, initial: 3 },
  BROTLI: { name: 'Brotli', min: 1, max: 11, initial: 4 },
  LZO: null,
}

/** Names of codecs in other programs. */
const codecNames: Readonly<Record<string, ParquetCodec>> = { UNCOMPRESSED: 'NONE', LZ4_RAW: 'LZ4' }

/** Resolves the name of a codec. Throws the error that `fail` creates from a message if there is no such codec. */
export function parquetCodec(text: string, fail: (message: string) => never): ParquetCodec {
  const upper = text.toUpperCase()
  const codec = Object.hasOwn(codecNames, upper) ? (codecNames[upper] ?? upper) : upper
  if (Object.hasOwn(parquetCodecs, codec)) return codec as ParquetCodec
  return fail(`invalid compression codec[${text}], expected one of: ${Object.keys(parquetCodecs).join(', ')}`)
}

/**
 * The compression level for a codec; null: the codec's default. Throws the error that `fail` creates from a message.
 */
export function parquetLevel(codec: ParquetCodec, level: number | null, fail: (message: string) => never): number {
  const range = parquetCodecs[codec]
  if (range === null) return 0
  const { name, min, max, initial } = range
  if (level === null) return initial
  return level >= min && level <= max ? level : fail(`${name} compression level must be between ${min} and ${max}`)
}
