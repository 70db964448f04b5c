// Files that `penstock export`, `sql --output` and `\o` write: the format that a name asks for, and compression by gzip.

import { statSync } from 'node:fs'
import { dirname, extname } from 'node:path'
import { exitCodes, ToolError } from './http-client.js'

export function isGzip(file: string): boolean {
  return /\.gz$/i.test(file)
}

/** The format of the ending of a name, before `.gz` if there is one; undefined if the name has no ending. */
export function formatOfName<Format>(file: string, endings: Readonly<Record<string, Format>>): Format | undefined {
  const ending = extname(isGzip(file) ? file.slice(0, -'.gz'.length) : file).toLowerCase()
  if (ending === '') return undefined
  const format = Object.hasOwn(endings, ending) ? endings[ending] : undefined
  if (format !== undefined) return format
  throw new ToolError(
    `no format has the ending ${ending}: use ${Object.keys(endings).join(', ')}, each also with .gz, or set the format [file=${file}]`,
    exitCodes.usage,
  )
}

export function checkFolder(file: string): void {
  const folder = dirname(file)
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return
  throw new ToolError(`the folder does not exist: ${folder} [file=${file}]`, exitCodes.usage)
}
