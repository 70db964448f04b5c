// The command line tool: a table of verbs. The adapter of commander.

import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { defaultRoot } from './root-folder.js'

interface StartFlags {
  readonly dir: string
  readonly set: readonly string[]
}

/** The compiled file lies in dist/deploy/. */
const packageFile = new URL('../../package.json', import.meta.url)

async function main(): Promise<void> {
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { readonly version: string }
  const program = new Command('penstock').description('A time-series database server.').version(version)
  program
    .command('start')
    .description('run the server in the foreground')
    .option('-d, --dir <root>', 'folder of data, settings and logs', defaultRoot)
    .option('--set <key=value>', 'a setting; may be given several times', gather, [])
    .action(async ({ dir, set }: StartFlags) => {
      const { start } = await import('./start.js')
      await start({ root: dir, assignments: set, version })
    })
  await program.parseAsync()
}

function gather(value: string, before: readonly string[]): readonly string[] {
  return [...before, value]
}

try {
  await main()
} catch (error) {
  process.stderr.write(`penstock: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}
