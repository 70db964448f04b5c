// Type of a row in a table of settings: the type, default, bounds and description of one setting. The keys of the
// table are the names of the settings.

type SettingType =
  | ('boolean' | 'integer' | 'size' | 'duration' | 'address' | 'choice' | 'secret')
  /** `text` must not be empty, `words` may be. */
  | ('text' | 'words')
  /** Comma-separated strings, trimmed. */
  | 'list'

export interface SettingRow {
  readonly type: SettingType
  /** Default, as written in conf/server.conf. */
  readonly initial: string
  readonly description: string
  /** For type choice; for type list, the permitted items. */
  readonly choices?: readonly string[]
  /** For type choice: accepts class names of Kafka Connect's converters. */
  readonly aliases?: 'connect'
  /** Inclusive bounds of integers, sizes (bytes) and durations (milliseconds). */
  readonly min?: number
  readonly max?: number
  /** For text: the pattern that values must match. */
  readonly pattern?: RegExp
  /** Can change while the server runs, by reload_config() or SIGHUP. */
  readonly reload?: true
}

export type SettingsTable = Readonly<Record<string, SettingRow>>
