// The root folder of a server: conf/ db/ log/ tmp/, and the server.conf that a new one begins with.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { sampleConfiguration } from './settings-text.js'

export interface RootFolder {
  readonly path: string
  readonly logFolder: string
  readonly configuration: { readonly path: string; readonly text: string }
}

export const defaultRoot = join(homedir(), '.penstock')

/** Makes what is missing. */
export function openRootFolder(path: string): RootFolder {
  const root = resolve(path)
  for (const name of ['conf', 'db', 'log', 'tmp']) mkdirSync(join(root, name), { recursive: true })
  const configurationPath = join(root, 'conf', 'server.conf')
  if (!existsSync(configurationPath)) writeFileSync(configurationPath, sampleConfiguration())
  return {
    path: root,
    logFolder: join(root, 'log'),
    configuration: { path: configurationPath, text: readFileSync(configurationPath, 'utf8') },
  }
}
