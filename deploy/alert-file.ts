// Stores the definitions of alerts in a file that is replaced atomically: a version, and the alerts as clients sent
// them.
//
// A file that cannot be read must not keep the server from starting: the error is logged, and the server runs without
// alerts. It rejects new definitions until the file is repaired or moved away, so that nothing is overwritten.

import { readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeDirectories } from '../engine/base/files.js'
import type { Log } from '../engine/base/log.js'
import { type AlertDefinition, AlertError, alertFrom, alertJson } from '../gateways/common/alerts.js'

const formatVersion = 1

export class AlertFile {
  readonly #path: string
  readonly #log: Log
  /** Why the file could not be read; null: it could. */
  #trouble: string | null = null

  constructor(path: string, log: Log) {
    this.#path = path
    this.#log = log
  }

  /** The stored alerts; none if the file does not exist or cannot be read. */
  read(): AlertDefinition[] {
    try {
      return alertsIn(JSON.parse(readFileSync(this.#path, 'utf8')))
    } catch (thrown) {
      if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT') return []
      this.#trouble = thrown instanceof Error ? thrown.message : String(thrown)
      const place = `[file=${this.#path}, error=${this.#trouble}]`
      this.#log('E', 'alerts', `alerts cannot be read; repair the file, or move it away, and restart ${place}`)
      return []
    }
  }

  /** Throws AlertError if the file holds what could not be read. */
  requireReadable(): void {
    if (this.#trouble !== null)
      throw new AlertError(`the file of alerts cannot be read, see the log [error=${this.#trouble}]`)
  }

  /** Durable when it resolves. The caller waits for one call before the next. */
  async write(alerts: readonly AlertDefinition[]): Promise<void> {
    const text = `${JSON.stringify({ version: formatVersion, alerts: alerts.map(alertJson) }, null, 2)}\n`
    makeDirectories(dirname(this.#path))
    await writeFile(`${this.#path}.new`, text, { flush: true })
    await rename(`${this.#path}.new`, this.#path)
  }
}

function alertsIn(value: unknown): AlertDefinition[] {
  if (typeof value !== 'object' || value === null || !('version' in value) || !('alerts' in value))
    throw new Error('the file contains no alerts')
  const { version, alerts } = value
  if (version !== formatVersion) throw new Error(`another version wrote the file [format=${String(version)}]`)
  if (!Array.isArray(alerts)) throw new Error('the file contains no list of alerts')
  return alerts.map((alert: unknown) => {
    const user = typeof alert === 'object' && alert !== null && 'user' in alert ? String(alert.user) : ''
    return alertFrom(alert, user)
  })
}
