// `npm run docs`: writes the files that are generated: docs/settings.md, the sample configuration deploy/server.conf,
// docs/functions.md, the dashboards for Grafana's QuestDB plug-in, and the Helm chart's copies of other files (a chart
// reads nothing outside of its folder).

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { functionsDocument } from '../engine/engine.js'
import { pluginDashboard, pluginDashboards } from './plugin-dashboards.js'
import { sampleConfiguration, settingsDocument } from './settings/settings-text.js'

// Relative to the compiled file in dist/deploy/.
writeFileSync(new URL('../../docs/settings.md', import.meta.url), settingsDocument())
writeFileSync(new URL('../../deploy/server.conf', import.meta.url), sampleConfiguration())
writeFileSync(new URL('../../docs/functions.md', import.meta.url), functionsDocument())

const [rules, dashboard] = ['prometheus/rules.yml', 'grafana/penstock.json']
copyFileSync(
  new URL(`../../deploy/${rules}`, import.meta.url),
  new URL('../../deploy/helm/files/rules.yml', import.meta.url),
)
copyFileSync(
  new URL(`../../deploy/${dashboard}`, import.meta.url),
  new URL('../../deploy/helm/files/dashboard.json', import.meta.url),
)

for (const name of pluginDashboards) {
  const text = readFileSync(new URL(`../../deploy/grafana/${name}.json`, import.meta.url), 'utf8')
  writeFileSync(new URL(`../../deploy/grafana-questdb/${name}.json`, import.meta.url), pluginDashboard(text))
}
