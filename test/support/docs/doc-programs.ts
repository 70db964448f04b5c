// Runs the programs of docs/quickstart/ beside a server, each in a folder of its own. JavaScript needs nothing but the
// packages of the repository. The other languages run only if the variable DOCS_LANGUAGES names them (`java go rust php
// r csharp`): `.ci/run` looks for their compilers, libraries and, in DOCS_JDBC, for the JDBC driver.

import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { repositoryRoot } from './source-tree.js'

interface Language {
  readonly file: string
  readonly command: string
  /** Copied beside the program, from test/interop/: what names the libraries and their versions. */
  readonly manifest?: string
}

const languages: Readonly<Record<string, Language>> = {
  javascript: { file: 'quickstart.mjs', command: `'${process.execPath}' quickstart.mjs` },
  java: { file: 'Quickstart.java', command: `java -cp "$DOCS_JDBC" Quickstart.java` },
  go: { file: 'main.go', command: 'go run -mod=mod .', manifest: 'go' },
  rust: { file: 'src/main.rs', command: 'cargo run --quiet --locked', manifest: 'rust-quickstart' },
  php: { file: 'quickstart.php', command: 'php quickstart.php' },
  r: { file: 'quickstart.R', command: 'Rscript quickstart.R' },
  csharp: {
    file: 'Quickstart.cs',
    command: 'mcs -langversion:latest -r:System.Net.Http Quickstart.cs && mono Quickstart.exe',
  },
}

const run = promisify(execFile)
const present = new Set(['javascript', ...(process.env['DOCS_LANGUAGES'] ?? '').split(' ')])

export function isLanguage(kind: string): boolean {
  return kind in languages
}

/** Whether this machine is said to have what the language needs. */
export function hasLanguage(kind: string): boolean {
  return present.has(kind)
}

/** What the program prints, after `error: ` if it fails. `ports` take the place of the documented ones. */
export async function runProgram(kind: string, text: string, ports: { http: string; pg: string }): Promise<string> {
  const { file, command, manifest } = languages[kind] as Language
  const folder = mkdtempSync(join(tmpdir(), 'penstock-docs-program-'))
  try {
    if (manifest !== undefined) cpSync(join(repositoryRoot, 'test/interop', manifest), folder, { recursive: true })
    symlinkSync(join(repositoryRoot, 'node_modules'), join(folder, 'node_modules'))
    mkdirSync(join(folder, 'src'), { recursive: true })
    writeFileSync(join(folder, file), text.replaceAll(/\b9000\b/g, ports.http).replaceAll(/\b8812\b/g, ports.pg))
    const { stdout } = await run('bash', ['-ec', command], { cwd: folder, timeout: 500_000 })
    return stdout.replaceAll(ports.http, '9000').replaceAll(ports.pg, '8812').trimEnd()
  } catch (error) {
    const { stdout = '', stderr = String(error) } = error as { stdout?: string; stderr?: string }
    return `error: ${(stdout + stderr).trim()}`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
