// What a row of a table of settings says.

type SettingType =
  | ('boolean' | 'integer' | 'size' | 'duration' | 'address' | 'choice' | 'secret')
  /** `text` is not empty, `words` may be. */
  | ('text' | 'words')
  /** Texts between commas, blanks around them dropped. */
  | 'list'

export interface SettingRow {
  readonly type: SettingType
  /** As it would stand in conf/server.conf. */
  readonly initial: string
  readonly says: string
  /** Of type choice. */
  readonly choices?: readonly string[]
  /** Of type choice: the class names of Kafka Connect's converters stand for their formats. */
  readonly aliases?: 'connect'
  /** Bounds of integers, sizes (bytes) and durations (milliseconds), inclusive. */
  readonly min?: number
  readonly max?: number
  /** Texts: what they look like. */
  readonly pattern?: RegExp
  /** Changes while the server runs, by reload_config() or SIGHUP. */
  readonly reload?: true
}

export type SettingsTable = Readonly<Record<string, SettingRow>>
