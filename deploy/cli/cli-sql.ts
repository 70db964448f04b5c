// Implements `penstock sql`: sends statements to a running server, from the command line, a file, standard input or a
// prompt. A statement ends at a semicolon outside of quotes and comments.

import { readFileSync } from 'node:fs'
import { type Client, exitCodes, openClient, ToolError } from './http-client.js'
import { converse, ownTerminal } from './prompt.js'
import { answerOf, checkFormat, type Format, isEmpty, type SqlFlags, splitStatements } from './sql-answer.js'

/** `statement` is one that the command line gives without an option. */
export async function runSql(statement: string | undefined, flags: SqlFlags): Promise<void> {
  if (statement !== undefined && (flags.execute !== undefined || flags.file !== undefined))
    throw new ToolError('give one of a statement, --execute and --file', exitCodes.usage)
  const format = checkFormat(flags.format ?? 'table')
  const client = openClient(flags)
  try {
    const given = statement ?? flags.execute
    if (given !== undefined) await runAll(client, given, format, flags)
    else if (flags.file !== undefined) await runAll(client, readFileSync(flags.file, 'utf8'), format, flags)
    else if (process.stdin.isTTY === true) await converse(client, format, flags, ownTerminal())
    else await runAll(client, await textOfInput(), format, flags)
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

/** Stops at the first statement that fails. */
async function runAll(client: Client, text: string, format: Format, flags: SqlFlags): Promise<void> {
  const { statements, rest } = splitStatements(text)
  for (const statement of [...statements, rest]) {
    if (!isEmpty(statement)) await runOne(client, statement, format, flags)
  }
}

async function runOne(client: Client, statement: string, format: Format, flags: SqlFlags): Promise<void> {
  const answer = await answerOf(client, statement, flags)
  process.stdout.write(answer.render(format))
  process.stderr.write(answer.notes(format))
}
