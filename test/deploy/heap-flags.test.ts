// Commands that start the server have the flags that are read when a heap is made.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { heapFlags } from '../../deploy/collector.js'
import { repositoryRoot } from '../support/source-tree.js'

test.each(['package.json', 'deploy/docker/Dockerfile', 'deploy/systemd/penstock.service'])('%s', (file) => {
  const text = readFileSync(join(repositoryRoot, file), 'utf8')
  for (const flag of heapFlags) expect(text).toContain(flag)
})
