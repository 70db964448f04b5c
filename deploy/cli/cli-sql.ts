// Implements `penstock sql`: sends statements to a running server, from the command line, a file, standard input or a
// prompt. A statement ends at a semicolon outside of quotes and comments.

import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { exportFormats, runExport } from './cli-export.js'
import { type Client, exitCodes, openClient, ToolError } from './http-client.js'
import { checkFolder, isGzip } from './output-file.js'
import { converse, ownTerminal } from './prompt.js'
import {
  checkFormat,
  errorPlace,
  type FileFormat,
  type Format,
  formatOfFile,
  isEmpty,
  placesOf,
  resultOf,
  type SqlFlags,
  splitStatements,
} from './sql-result.js'

/** `statement` is one that the command line gives without an option. */
export async function runSql(statement: string | undefined, flags: SqlFlags): Promise<void> {
  if (statement !== undefined && (flags.execute !== undefined || flags.file !== undefined))
    throw new ToolError('give one of a statement, --execute and --file', exitCodes.usage)
  const { output } = flags
  const format = checkFormat(flags.format ?? 'table')
  const named = flags.format === undefined && output !== undefined ? formatOfFile(output) : undefined
  const client = openClient(flags)
  try {
    const given = statement ?? flags.execute
    const isPrompt = given === undefined && flags.file === undefined && output === undefined
    if (isPrompt && process.stdin.isTTY === true) return await converse(client, format, flags, ownTerminal())
    const text = given ?? (flags.file === undefined ? await textOfInput() : readFileSync(flags.file, 'utf8'))
    if (text.trimStart().startsWith('\\'))
      throw new ToolError('backslash commands are for the prompt: penstock sql without a statement', exitCodes.usage)
    if (output === undefined) await runAll(client, text, format, flags)
    else await runInto(client, output, text, named ?? format, flags)
  } finally {
    await client.close()
  }
}

async function textOfInput(): Promise<string> {
  let text = ''
  process.stdin.setEncoding('utf8')
  for await (const chunk of process.stdin) text += String(chunk)
  return text
}

/** Writes results to a file. Formats that hold a whole result of any size come from the export, verified. */
async function runInto(client: Client, file: string, text: string, format: FileFormat, flags: SqlFlags): Promise<void> {
  checkFolder(file)
  const exported = exportFormats.find((name) => name === format)
  const { statements, rest } = splitStatements(text)
  const [only = '', ...others] = [...statements, rest].filter((statement) => !isEmpty(statement))
  if (exported !== undefined && others.length === 0) {
    const { limit, url, user, password, token, ca, insecure } = flags
    const given = { limit, user, password, token, ca, insecure }
    const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
    await runExport(only, { url, ...set, format: exported, output: file })
    return
  }
  if (format === 'parquet' || format === 'arrow')
    throw new ToolError(`a file of the format ${format} holds the rows of one statement`, exitCodes.usage)
  writeFileSync(file, '')
  await runAll(client, text, format, flags, (result) => appendFileSync(file, isGzip(file) ? gzipSync(result) : result))
}

/** Stops at the first statement that fails. */
async function runAll(
  client: Client,
  text: string,
  format: Format,
  flags: SqlFlags,
  write: (text: string) => unknown = (result) => process.stdout.write(result),
): Promise<void> {
  const { statements, rest } = splitStatements(text)
  for (const { statement, linesBefore } of placesOf(text, [...statements, rest])) {
    const origin = flags.file === undefined ? null : { file: flags.file, linesBefore }
    const result = await resultOf(client, statement, flags).catch((error: unknown) => {
      throw error instanceof ToolError ? error.at(errorPlace(error, statement, origin)) : error
    })
    write(result.render(format))
    process.stderr.write(result.notes(format))
  }
}
