// `npm run docs`: writes the documents that are generated from tables (settings, functions).

import { writeFileSync } from 'node:fs'
import { functionsDocument } from '../engine/engine.js'
import { sampleConfiguration, settingsDocument } from './settings/settings-text.js'

// Relative to the compiled file in dist/deploy/.
writeFileSync(new URL('../../docs/settings.md', import.meta.url), settingsDocument())
writeFileSync(new URL('../../deploy/server.conf', import.meta.url), sampleConfiguration())
writeFileSync(new URL('../../docs/functions.md', import.meta.url), functionsDocument())
