// Parses the values of settings. Sizes are written `2m`, durations `5m` or `300ms`.

import { type BindAddress, parseBindAddress } from '../../gateways/common/bind-address.js'
import type { SettingRow, SettingsTable } from './setting-row.js'

type ValueOf<Row extends SettingRow> = Row['type'] extends 'boolean'
  ? boolean
  : Row['type'] extends 'integer' | 'size' | 'duration'
    ? number
    : Row['type'] extends 'address'
      ? BindAddress
      : Row['type'] extends 'list'
        ? readonly string[]
        : Row extends { readonly choices: readonly (infer Choice)[] }
          ? Choice
          : string

/** Values by name: sizes in bytes, durations in milliseconds. */
export type SettingsOf<Table extends SettingsTable> = { readonly [Name in keyof Table]: ValueOf<Table[Name]> }

export type SettingValue = boolean | number | string | readonly string[] | BindAddress

/** Describes valid values of the type, for messages and documents. */
export function expectation(row: SettingRow): string {
  switch (row.type) {
    case 'boolean':
      return 'true or false'
    case 'integer':
      return `an integer${boundsText(row)}`
    case 'size':
      return `a size such as 512k, 2m or 1g${boundsText(row)}`
    case 'duration':
      return `a duration such as 300ms, 30s, 5m, 2h or 1d${boundsText(row)}`
    case 'address':
      return 'an address such as 0.0.0.0:9000'
    case 'choice':
      return `one of ${(row.choices ?? []).join(', ')}`
    case 'text':
    case 'words':
    case 'secret':
      if (row.pattern === undefined) return 'a string'
      return row.initial === '' ? `a string that matches ${row.pattern.source}` : `a string such as ${row.initial}`
    case 'list':
      return row.choices === undefined ? 'strings separated by commas' : `a list of ${row.choices.join(', ')}`
  }
}

/** Null when the text is not a valid value. */
export function parseSetting(row: SettingRow, text: string): SettingValue | null {
  switch (row.type) {
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : null
    case 'integer':
      return within(row, /^-?\d{1,15}$/.test(text) ? Number(text) : null)
    case 'size':
      return within(row, withUnit(text, sizeUnits))
    case 'duration':
      return within(row, withUnit(text, durationUnits))
    case 'address':
      return parseBindAddress(text)
    case 'choice':
      return choiceOf(row, text)
    case 'text':
      return (text === '' && row.initial !== '') || row.pattern?.test(text) === false ? null : text
    case 'words':
    case 'secret':
      return row.pattern?.test(text) === false ? null : text
    case 'list':
      return text === '' ? [] : listOf(row, text)
  }
}

/** Last parts of the class names of Kafka Connect's converters. */
const converters: Readonly<Record<string, string>> = {
  StringConverter: 'string',
  JsonConverter: 'json',
  AvroConverter: 'avro',
  JsonSchemaConverter: 'json_schema',
  ProtobufConverter: 'protobuf',
  IntegerConverter: 'int',
  LongConverter: 'long',
  DoubleConverter: 'double',
}

function choiceOf({ choices = [], aliases }: SettingRow, text: string): string | null {
  const converter = /^(?:io|org)\.[\w.]+\.(\w+)$/.exec(text)?.[1]
  const choice = aliases === 'connect' && converter !== undefined ? (converters[converter] ?? '') : text
  return choices.includes(choice) ? choice : null
}

function listOf({ choices }: SettingRow, text: string): readonly string[] | null {
  const items = text.split(',').map((item) => item.trim())
  return items.some((item) => item === '' || choices?.includes(item) === false) ? null : items
}

const sizeUnits: Readonly<Record<string, number>> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 }
const durationUnits: Readonly<Record<string, number>> = {
  '': 1,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

function withUnit(text: string, units: Readonly<Record<string, number>>): number | null {
  const match = /^(\d{1,15})\s*([a-z]*)$/.exec(text.toLowerCase())
  const unit = match === null ? undefined : units[match[2] ?? '']
  return unit === undefined ? null : Number(match?.[1]) * unit
}

function within(row: SettingRow, value: number | null): number | null {
  if (value === null) return null
  return value < (row.min ?? Number.NEGATIVE_INFINITY) || value > (row.max ?? Number.POSITIVE_INFINITY) ? null : value
}

function boundsText({ min, max }: SettingRow): string {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}`
  if (min !== undefined) return ` of at least ${min}`
  return max === undefined ? '' : ` of at most ${max}`
}
