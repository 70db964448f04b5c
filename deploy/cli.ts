// The command line tool `penstock`: defines its commands, their options and help texts. The only module that uses the
// package commander.

import { readFileSync } from 'node:fs'
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { launchAhead } from '../engine/threads/launch.js'
import type { BackupFlags, CheckFlags } from './cli/cli-backup.js'
import type { BenchFlags } from './cli/cli-bench.js'
import type { ConfigFlags } from './cli/cli-config.js'
import type { DemoFlags } from './cli/cli-demo.js'
import type { DoctorFlags } from './cli/cli-doctor.js'
import { type ExportFlags, exportFormats, runExport } from './cli/cli-export.js'
import { type ImportFlags, importFormats, runImport } from './cli/cli-import.js'
import type { RepairFlags } from './cli/cli-repair.js'
import { exitCodes, ToolError } from './cli/http-client.js'
import { completionScript, shells } from './cli/shell-completions.js'
import { type SqlFlags, sqlFormats } from './cli/sql-result.js'
import type { RestoreFlags } from './cli/stored-backup.js'
import { defaultRoot } from './root/root-folder.js'

interface StartFlags {
  readonly dir: string
  readonly set: readonly string[]
}

/** Relative to the compiled file in dist/deploy/. */
const packageFile = new URL('../../package.json', import.meta.url)

const exitHelp = `
Exit status: 0 success, 1 rejected or failed, 2 wrong usage, 3 no response from the server.`

async function main(): Promise<void> {
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { readonly version: string }
  const program = new Command('penstock')
    .description('A time-series database server, and the tools around it.')
    .option('-V, --version', 'print version, commit, Node.js and the formats on disk')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'penstock: ')) })
    .showHelpAfterError('(see penstock help <command>)')
  addStart(program, version)
  addImport(program)
  addExport(program)
  addSql(program)
  addDemo(program)
  addCheck(program)
  addBackup(program)
  addRestore(program)
  addRepair(program)
  addUser(program)
  addConfig(program)
  addDoctor(program)
  addBench(program)
  addCompletions(program)
  if (['-V', '--version'].includes(process.argv[2] ?? '')) {
    const { versionText } = await import('./cli/cli-version.js')
    process.stdout.write(versionText(version, new URL('.', packageFile)))
    return
  }
  await program.parseAsync()
}

function addStart(program: Command, version: string): void {
  program
    .command('start')
    .description('run the server in the foreground')
    .addOption(rootOption('-d, --dir <root>', 'root folder: data, settings and logs'))
    .option('--set <key=value>', 'override a setting; may be given several times', gather, [])
    .action(async ({ dir, set }: StartFlags) => {
      // The threads load their code on other processors while this thread loads its own.
      for (const module of ['writer-thread.js', 'log-thread.js', 'query-thread.js']) launchAhead(module)
      const { start } = await import('./start.js')
      await start({ root: dir, assignments: set, version })
    })
}

/** Adds a command that talks to a running server, with the options for its address and credentials. */
function remote(program: Command, usage: string, description: string): Command {
  return program
    .command(usage)
    .description(description)
    .addOption(
      new Option('-u, --url <url>', 'address of the server').env('PENSTOCK_URL').default('http://127.0.0.1:9000'),
    )
    .addOption(new Option('--user <name>', 'name of the user').env('PENSTOCK_USER'))
    .addOption(
      new Option('--password <password>', 'password; the environment variable is safer').env('PENSTOCK_PASSWORD'),
    )
    .addOption(new Option('--token <token>', 'bearer token instead of user and password').env('PENSTOCK_TOKEN'))
    .addOption(new Option('--ca <file>', 'file of CA certificates (PEM) to trust for https').env('PENSTOCK_CA'))
    .option('--insecure', 'do not verify the certificate of the server')
}

function addImport(program: Command): void {
  remote(program, 'import [file]', 'import a file, or standard input (-), into tables')
    .addOption(
      new Option('-f, --format <format>', 'format of the file; default: by the file name').choices(importFormats),
    )
    .option('--from-sqlite <file>', 'same as --format sqlite: the output of `sqlite3 data.db .dump`')
    .option('-t, --table <name>', 'csv: table to import into; default: the file name. sqlite: import only this table')
    .option(
      '--timestamp <column>',
      'designated timestamp; csv: default: the only column of timestamps, --timestamp= for none. sqlite: also table.column,table.column or none',
    )
    .option('-p, --partition-by <unit>', 'partition new tables by NONE, HOUR, DAY, WEEK, MONTH or YEAR')
    .option('--overwrite', 'replace existing tables; default: add rows to them')
    .option('--atomicity <mode>', 'abort: a bad row ends the import; skipRow: bad rows are skipped and reported')
    .option('--delimiter <character>', 'csv: field delimiter; default: detected')
    .option('--header', 'csv: the first line has the column names; default: detected')
    .option('--skip-lev', 'csv: ignore extra values at the end of lines')
    .option('--schema <json>', 'csv: types of columns, as [{"name": .., "type": .., "pattern": ..}]')
    .option('--precision <unit>', 'lines: unit of timestamps: n, u, ms, s, m or h; default: n')
    .option('--tables <names>', 'sqlite: import only these tables, separated by commas')
    .option('--unit <unit>', 'unit of numeric timestamps: s, ms, us, ns (sqlite: also julian); default: by their size')
    .option('--types <list>', 'sqlite: types that override the detected ones, as table.column:TYPE,..')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
A file whose name ends with .gz is decompressed. Examples:
  penstock import trades.csv --timestamp ts --partition-by DAY
  sqlite3 logger.db .dump | penstock import --from-sqlite - --timestamp readings.at
${exitHelp}`,
    )
    .action(async (file: string | undefined, flags: ImportFlags) => {
      await runImport(file, flags)
    })
}

function addExport(program: Command): void {
  remote(program, 'export <query>', 'write the rows of a SELECT, or of a table, to a file')
    .option('-o, --output <file>', 'output file; default: standard output')
    .addOption(
      new Option('-f, --format <format>', 'format of the file; default: by the file name, else csv').choices(
        exportFormats,
      ),
    )
    .option('--limit <rows>', 'maximum number of rows, as n or skip,n')
    .option('--delimiter <character>', 'csv: field delimiter; default: a comma')
    .option('--no-header', 'csv: omit the line of column names')
    .option('--compression <codec>', 'parquet: codec: NONE, SNAPPY, GZIP, LZ4, ZSTD, BROTLI or LZO')
    .option('--timeout <ms>', 'time limit of the query in milliseconds')
    .addHelpText(
      'after',
      `
The checksum of the file is verified; a file gets its name only when it is complete. Examples:
  penstock export trades -o trades.parquet
  penstock export "select * from trades where ts in today()" | gzip > today.csv.gz
${exitHelp}`,
    )
    .action(async (query: string, flags: ExportFlags) => {
      await runExport(query, flags)
    })
}

function addSql(program: Command): void {
  remote(program, 'sql [statement]', 'run statements: given here, --file, standard input, or a prompt')
    .option('-e, --execute <statements>', 'the same as an argument')
    .option('--file <file>', 'file of statements to run')
    .option(
      '-o, --output <file>',
      'file for the results; its name chooses the format: .csv .json .md .html .parquet ..',
    )
    .addOption(new Option('-f, --format <format>', 'output format; default: table').choices(sqlFormats))
    .option('--limit <rows>', 'maximum number of rows, as n or skip,n; the server has a limit too: use export for more')
    .option('--timings', 'print timings to standard error')
    .addHelpText('after', exitHelp)
    .action(async (statement: string | undefined, flags: SqlFlags) => {
      const { runSql } = await import('./cli/cli-sql.js')
      await runSql(statement, flags)
    })
}

function addDemo(program: Command): void {
  remote(program, 'demo', 'create the tables that the examples of the documentation query')
    .option('--replace', 'replace the tables if they exist')
    .option('--remove', 'remove the tables')
    .addHelpText(
      'after',
      `
Creates sensors, readings and doors: a week of a wholesaler's cold rooms, with gaps, late rows and faults.
A table of yours with one of these names is never changed.
${exitHelp}`,
    )
    .action(async (flags: DemoFlags) => {
      const { runDemo } = await import('./cli/cli-demo.js')
      await runDemo(flags)
    })
}

function addCheck(program: Command): void {
  program
    .command('check')
    .description('verify every checksum of a root folder or a backup: log, manifest, parts, symbols, users')
    .addOption(rootOption('-d, --dir <folder>', 'root folder or backup'))
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
Lists each damaged file with the offset. Nothing is written; a server may be running.
Exit status: 0 every checksum is right, 1 damage, 2 wrong usage.`,
    )
    .action(async (flags: CheckFlags) => {
      const { runCheck } = await import('./cli/cli-backup.js')
      await runCheck(flags)
    })
}

function addBackup(program: Command): void {
  remote(program, 'backup <folder>', 'make a consistent copy of the data of a running server on this machine')
    .addOption(rootOption('-d, --dir <root>', 'root folder of the server'))
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
An earlier backup is updated incrementally, and remains consistent even if this command is interrupted.
Meanwhile the server keeps the copied version and serves reads and writes. Settings (conf/) are not included.
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
    .description('restore a backup into a root folder that has no data, and verify it')
    .addOption(rootOption('-d, --dir <root>', 'root folder'))
    .option('--at <time>', 'of several in object storage: the last one whose time begins so; default: the last one')
    .option('--root-id <id>', 'of several roots in object storage: the one whose backup it is')
    .option(
      '--set <key=value>',
      'a setting of the object storage, as for start; may be given several times',
      gather,
      [],
    )
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
A backup is a folder, or s3://bucket/prefix of the service that the settings object.store.s3.* describe: of --set, of
the environment, or of conf/server.conf in the root folder.
${exitHelp}`,
    )
    .action(async (backup: string, flags: RestoreFlags) => {
      const { runRestore } = await import('./cli/cli-backup.js')
      await runRestore(backup, flags)
    })
}

/** The root folder option. Its default is in the user's home; without one the option is mandatory. */
function rootOption(flags: string, description: string): Option {
  const option = new Option(flags, description).argParser(namedFolder)
  return defaultRoot === undefined ? option.makeOptionMandatory() : option.default(defaultRoot)
}

/** Rejects the empty path of a variable that is not set, which would be the current folder. */
function namedFolder(path: string): string {
  if (path === '') throw new InvalidArgumentError('the path is empty')
  return path
}

function addRepair(program: Command): void {
  program
    .command('repair')
    .description(
      'make data and manifest consistent, with the server stopped; without --apply: list what has to be done',
    )
    .addOption(rootOption('-d, --dir <root>', 'root folder'))
    .option('--apply', 'make the changes; default: only list them')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
For a root folder whose manifest is older than its data, damaged or lost. Data files that the manifest does not know
are added again if all checksums are right and no other file has their rows; all others are moved to <root>/orphans.
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
    .description('manage the users of a root folder, with the server stopped')
    .command('reset')
    .description('remove all users, to regain access when their file is damaged or the passwords are lost')
    .addOption(rootOption('-d, --dir <root>', 'root folder'))
    .addHelpText('after', exitHelp)
    .action(async (flags: RepairFlags) => {
      const { runUserReset } = await import('./cli/cli-repair.js')
      await runUserReset(flags)
    })
}

function addConfig(program: Command): void {
  program
    .command('config [name]')
    .description('print the settings of a root with the place that sets each; name: only those that contain it')
    .addOption(rootOption('-d, --dir <root>', 'root folder'))
    .option('--set <key=value>', 'as for start; may be given several times', gather, [])
    .option('--changed', 'only what differs from the defaults')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
Shows what a start would use; secrets are hidden. A running server answers SHOW PARAMETERS.
Exit status: 0 success, 1 a start would fail, 2 wrong usage.`,
    )
    .action(async (name: string | undefined, flags: ConfigFlags) => {
      const { runConfig } = await import('./cli/cli-config.js')
      runConfig(name, flags)
    })
}

function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('say what is wrong with this machine or a root folder, and what to do about it')
    .addOption(rootOption('-d, --dir <root>', 'root folder; it need not exist yet'))
    .option('--json', 'print the findings as JSON')
    .addHelpText(
      'after',
      `
Looks at Node.js, limits, memory, clock, file system, free space, speed of the disk, permissions, settings, ports and data.
Run it as the user of the server. A server may be running; its settings by --set or its own environment are not seen.
Exit status: 0 no problem, 1 problems, 2 wrong usage.`,
    )
    .action(async (flags: DoctorFlags) => {
      const { runDoctor } = await import('./cli/cli-doctor.js')
      await runDoctor(flags)
    })
}

function addBench(program: Command): void {
  const dir = new Option('-d, --dir <folder>', 'folder on the disk to measure; a folder in it is made and removed')
  program
    .command('bench')
    .description('measure this machine for half a minute: disk, ingest, commits, queries')
    .addOption(dir.argParser(namedFolder).default('.', 'the current folder'))
    .option('--seconds <seconds>', 'time of the ingest', '5')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      '\nA server of its own is measured, over HTTP on this machine. Nothing else should run meanwhile.',
    )
    .action(async (flags: BenchFlags) => {
      const { runBench } = await import('./cli/cli-bench.js')
      await runBench(flags)
    })
}

function addCompletions(program: Command): void {
  program
    .command('completions')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>').choices(shells))
    .addHelpText(
      'after',
      `
bash: penstock completions bash > ~/.local/share/bash-completion/completions/penstock
zsh:  penstock completions zsh > "\${fpath[1]}/_penstock"
fish: penstock completions fish > ~/.config/fish/completions/penstock.fish`,
    )
    .action((shell: string) => {
      const described = program.commands.map((command) => ({
        name: command.name(),
        description: command.description(),
        options: command.options.map(({ long, short, description, argChoices }) => ({
          ...{ long: long ?? '', short: short ?? '', description, choices: argChoices ?? [] },
        })),
      }))
      process.stdout.write(completionScript(shell, described))
    })
}

function gather(value: string, before: readonly string[]): readonly string[] {
  return [...before, value]
}

/** The exit status for an error. Errors of commander have already been printed. */
function statusOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage
  process.stderr.write(`penstock: ${error instanceof Error ? error.message : String(error)}\n`)
  return error instanceof ToolError ? error.exitCode : exitCodes.refused
}

/** Ends a tool silently when the reader of a pipe has enough: `penstock sql .. | head`. A server goes on. */
for (const stream of process.argv[2] === 'start' ? [] : [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
}

main().catch((error: unknown) => process.exit(statusOf(error)))
