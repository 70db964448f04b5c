// The command line tool: a table of verbs. The adapter of commander.

import { readFileSync } from 'node:fs'
import { Command, CommanderError, Option } from 'commander'
import { launchAhead } from '../engine/threads/launch.js'
import type { BackupFlags, CheckFlags } from './cli/cli-backup.js'
import { type ExportFlags, exportFormats } from './cli/cli-export.js'
import { type ImportFlags, importFormats } from './cli/cli-import.js'
import type { RepairFlags } from './cli/cli-repair.js'
import { type SqlFlags, sqlFormats } from './cli/cli-sql.js'
import { exitCodes, ToolError } from './cli/http-client.js'
import { defaultRoot } from './root/root-folder.js'

interface StartFlags {
  readonly dir: string
  readonly set: readonly string[]
}

/** The compiled file lies in dist/deploy/. */
const packageFile = new URL('../../package.json', import.meta.url)

const exitHelp = `
Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 no answer from the server.`

async function main(): Promise<void> {
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { readonly version: string }
  const program = new Command('penstock')
    .description('A time-series database server, and the tools around it.')
    .version(version)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'penstock: ')) })
    .showHelpAfterError('(penstock help <command> tells more)')
  addStart(program, version)
  addImport(program)
  addExport(program)
  addSql(program)
  addCheck(program)
  addBackup(program)
  addRestore(program)
  addRepair(program)
  addUser(program)
  await program.parseAsync()
}

function addStart(program: Command, version: string): void {
  program
    .command('start')
    .description('run the server in the foreground')
    .addOption(rootOption('-d, --dir <root>', 'folder of data, settings and logs'))
    .option('--set <key=value>', 'a setting; may be given several times', gather, [])
    .action(async ({ dir, set }: StartFlags) => {
      // A start waits for them; they load on other processors while this thread loads what it runs.
      for (const module of ['writer-thread.js', 'log-thread.js', 'query-thread.js']) launchAhead(module)
      const { start } = await import('./start.js')
      await start({ root: dir, assignments: set, version })
    })
}

/** A verb that talks to a running server. */
function remote(program: Command, usage: string, description: string): Command {
  return program
    .command(usage)
    .description(description)
    .addOption(
      new Option('-u, --url <url>', 'address of the server').env('PENSTOCK_URL').default('http://127.0.0.1:9000'),
    )
    .addOption(new Option('--user <name>', 'user').env('PENSTOCK_USER'))
    .addOption(
      new Option('--password <password>', 'password; better given by the environment').env('PENSTOCK_PASSWORD'),
    )
    .addOption(new Option('--token <token>', 'bearer token instead of user and password').env('PENSTOCK_TOKEN'))
    .option('--ca <file>', 'certificates (PEM) that an https server may be signed by')
    .option('--insecure', 'take any certificate of an https server')
}

function addImport(program: Command): void {
  remote(program, 'import [file]', 'bring a file, or standard input (-), into tables')
    .addOption(
      new Option('-f, --format <format>', 'csv, line protocol, or a dump of SQLite; else told by the name').choices(
        importFormats,
      ),
    )
    .option('--from-sqlite <file>', 'short for --format sqlite: what `sqlite3 data.db .dump` writes')
    .option('-t, --table <name>', 'csv: table; else the name of the file. sqlite: only this table')
    .option(
      '--timestamp <column>',
      'designated timestamp; csv: else the only column of times, --timestamp= for none. sqlite: also table.column,table.column or none',
    )
    .option('-p, --partition-by <unit>', 'NONE, HOUR, DAY, WEEK, MONTH or YEAR')
    .option('--overwrite', 'replace tables that are there; else rows are added')
    .option('--atomicity <mode>', 'abort: a bad row ends the import. skipRow: it is left out and reported')
    .option('--delimiter <character>', 'csv: else found')
    .option('--header', 'csv: the first line has names, whatever it looks like')
    .option('--skip-lev', 'csv: pass over what lines have behind their last column')
    .option('--schema <json>', 'csv: [{"name": .., "type": .., "pattern": ..}]')
    .option('--precision <unit>', 'lines: n, u, ms, s, m or h; default n')
    .option('--tables <names>', 'sqlite: only these, separated by commas')
    .option('--unit <unit>', 'of times that are numbers: s, ms, us, ns (sqlite: also julian); else told by their size')
    .option('--types <list>', 'sqlite: table.column:TYPE,.. instead of the types that are found')
    .option('--json', 'answer as JSON')
    .addHelpText(
      'after',
      `
A file whose name ends with .gz is expanded. Examples:
  penstock import trades.csv --timestamp ts --partition-by DAY
  sqlite3 logger.db .dump | penstock import --from-sqlite - --timestamp readings.at
${exitHelp}`,
    )
    .action(async (file: string | undefined, flags: ImportFlags) => {
      const { runImport } = await import('./cli/cli-import.js')
      await runImport(file, flags)
    })
}

function addExport(program: Command): void {
  remote(program, 'export <query>', 'write the rows of a SELECT, or of a table, to a file')
    .option('-o, --output <file>', 'else standard output')
    .addOption(new Option('-f, --format <format>', 'else told by the name of the file, or csv').choices(exportFormats))
    .option('--limit <rows>', 'n, or skip,n')
    .option('--delimiter <character>', 'csv: else a comma')
    .option('--no-header', 'csv: without names')
    .option('--compression <codec>', 'parquet: NONE, SNAPPY, GZIP, LZ4, ZSTD, BROTLI or LZO')
    .option('--timeout <ms>', 'deadline of the query')
    .addHelpText(
      'after',
      `
Row count and checksum are verified; a file appears under its name only when it is whole. Examples:
  penstock export trades -o trades.parquet
  penstock export "select * from trades where ts in today()" | gzip > today.csv.gz
${exitHelp}`,
    )
    .action(async (query: string, flags: ExportFlags) => {
      const { runExport } = await import('./cli/cli-export.js')
      await runExport(query, flags)
    })
}

function addSql(program: Command): void {
  remote(program, 'sql', 'run statements: -e, --file, standard input, or a prompt')
    .option('-e, --execute <statements>', 'separated by semicolons')
    .option('--file <file>', 'statements in a file')
    .addOption(new Option('-f, --format <format>', 'how rows are shown').choices(sqlFormats).default('table'))
    .option('--limit <rows>', 'n, or skip,n; the server has a limit of its own: use export for whole results')
    .option('--timings', 'tell times on standard error')
    .addHelpText('after', exitHelp)
    .action(async (flags: SqlFlags) => {
      const { runSql } = await import('./cli/cli-sql.js')
      await runSql(flags)
    })
}

function addCheck(program: Command): void {
  program
    .command('check')
    .description('compare every checksum of a root folder or a backup: log, manifest, parts, symbols, users')
    .addOption(rootOption('-d, --dir <folder>', 'root folder, or a backup'))
    .option('--json', 'answer as JSON')
    .addHelpText(
      'after',
      `
Names each damaged file with the offset. Nothing is written; a server may run meanwhile.
Exit status: 0 every checksum is right, 1 damage, 2 wrong usage.`,
    )
    .action(async (flags: CheckFlags) => {
      const { runCheck } = await import('./cli/cli-backup.js')
      await runCheck(flags)
    })
}

function addBackup(program: Command): void {
  remote(program, 'backup <folder>', 'copy the data of a running server on this machine, consistent at one moment')
    .addOption(rootOption('-d, --dir <root>', 'root folder of the server'))
    .option('--json', 'answer as JSON')
    .addHelpText(
      'after',
      `
Into an earlier backup only what is new is copied, and what is gone is removed; it stays whole whenever this ends.
The server pins the version meanwhile and takes reads and writes. Settings (conf/) are not part of a backup.
${exitHelp}`,
    )
    .action(async (folder: string, flags: BackupFlags) => {
      const { runBackup } = await import('./cli/cli-backup.js')
      await runBackup(folder, flags)
    })
}

function addRestore(program: Command): void {
  program
    .command('restore <backup>')
    .description('bring a backup into a root folder without data, and check it')
    .addOption(rootOption('-d, --dir <root>', 'root folder'))
    .option('--json', 'answer as JSON')
    .addHelpText('after', exitHelp)
    .action(async (backup: string, flags: CheckFlags) => {
      const { runRestore } = await import('./cli/cli-backup.js')
      await runRestore(backup, flags)
    })
}

/** The default lies in the home of the user; who has none has to name a folder. */
function rootOption(flags: string, says: string): Option {
  const option = new Option(flags, says)
  return defaultRoot === undefined ? option.makeOptionMandatory() : option.default(defaultRoot)
}

function addRepair(program: Command): void {
  program
    .command('repair')
    .description('bring data and manifest together again, with the server stopped: lists what is to be done')
    .addOption(rootOption('-d, --dir <root>', 'root folder'))
    .option('--apply', 'do it; else nothing is written')
    .option('--json', 'answer as JSON')
    .addHelpText(
      'after',
      `
For a root whose manifest is older than its data, damaged or lost. Data files that the manifest does not know become the
tables' again when all their checksums are right and their rows are nowhere else; the rest goes to <root>/orphans.
${exitHelp}`,
    )
    .action(async (flags: RepairFlags) => {
      const { runRepair } = await import('./cli/cli-repair.js')
      await runRepair(flags)
    })
}

function addUser(program: Command): void {
  program
    .command('user')
    .description('the users of a root, with the server stopped')
    .command('reset')
    .description('begin without users: the way back in when their file or every password is lost')
    .addOption(rootOption('-d, --dir <root>', 'root folder'))
    .addHelpText('after', exitHelp)
    .action(async (flags: RepairFlags) => {
      const { runUserReset } = await import('./cli/cli-repair.js')
      await runUserReset(flags)
    })
}

function gather(value: string, before: readonly string[]): readonly string[] {
  return [...before, value]
}

/** Written by commander already, with its own status. */
function statusOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage
  process.stderr.write(`penstock: ${error instanceof Error ? error.message : String(error)}\n`)
  return error instanceof ToolError ? error.exitCode : exitCodes.refused
}

try {
  await main()
} catch (error) {
  process.exit(statusOf(error))
}
