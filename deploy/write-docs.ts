// `npm run docs`: writes the documents that derive from tables.

import { writeFileSync } from 'node:fs'
import { functionsDocument } from '../engine/engine.js'
import { sampleConfiguration, settingsDocument } from './settings/settings-text.js'

// The compiled file lies in dist/deploy/.
writeFileSync(new URL('../../docs/settings.md', import.meta.url), settingsDocument())
writeFileSync(new URL('../../deploy/server.conf', import.meta.url), sampleConfiguration())
writeFileSync(new URL('../../docs/functions.md', import.meta.url), functionsDocument())
