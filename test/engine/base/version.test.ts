// Goal: the version in the code, which the SQL function build() shows, is that of package.json.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { productVersion } from '../../../engine/base/version.js'
import { repositoryRoot } from '../../support/docs/source-tree.js'

test('the version is that of package.json', () => {
  const text = readFileSync(join(repositoryRoot, 'package.json'), 'utf8')
  expect(text).toContain(`"version": "${productVersion}"`)
})
