// Goal: the material for operators matches the server: the sample configuration is current, dashboards and alert rules
// use existing metrics, each alert has a runbook, manifests use the default ports, existing settings and the version of
// the package, and the image and the systemd unit agree with the files that the packages install.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { SettingRow } from '../../deploy/settings/setting-row.js'
import { environmentName } from '../../deploy/settings/settings.js'
import { settingsTable } from '../../deploy/settings/settings-table.js'
import { sampleConfiguration } from '../../deploy/settings/settings-text.js'
import { metricNames } from '../support/docs/metric-names.js'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { testHttp } from '../support/gateway.js'

function textOf(path: string): string {
  return readFileSync(join(repositoryRoot, path), 'utf8')
}

const manifests = ['deploy/kubernetes/penstock.yaml', 'deploy/docker/compose.yaml']

test('deploy/server.conf is current: npm run docs writes it', () => {
  expect(textOf('deploy/server.conf')).toBe(sampleConfiguration())
})

test.each(['deploy/grafana/penstock.json', 'deploy/prometheus/rules.yml'])(
  '%s names metrics that exist',
  async (path) => {
    const gateway = await testHttp()
    const process = (await (await fetch(`${gateway.url}/metrics`)).text()).matchAll(/^# TYPE (\S+)/gm)
    await gateway.close()
    const known = new Set([...metricNames(), ...[...process].map(([, name]) => name)])
    const named = [...textOf(path).matchAll(/svc_\w+/g)].map(([name]) => name)
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter((name) => !known.has(name) && !known.has(name.replace(/_(bucket|sum|count)$/, '')))).toEqual([])
  },
)

test.each(manifests)('%s names settings that exist', (path) => {
  const rows = Object.entries<SettingRow>(settingsTable)
  const known = new Set(
    rows.flatMap(([key, { type }]) => [
      environmentName(key),
      ...(type === 'secret' ? [environmentName(`${key}.file`)] : []),
    ]),
  )
  // The command line tool reads these, and Grafana the password.
  for (const name of ['URL', 'USER', 'PASSWORD']) known.add(`PENSTOCK_${name}`)
  const named = [...textOf(path).matchAll(/^ +(PENSTOCK_\w+):/gm)].map(([, name]) => name)
  expect(named.length).toBeGreaterThan(2)
  expect(named.filter((name) => !known.has(name ?? ''))).toEqual([])
})

test('manifests and image name the default ports', () => {
  const ports = Object.entries<SettingRow>(settingsTable)
    .filter(([key]) => /^(http|pg|line\.tcp|http\.min)\.net\.bind\.to$/.test(key))
    .map(([, { initial }]) => initial.split(':')[1] ?? '')
  expect(ports.length).toBe(4)
  for (const port of ports) {
    expect(textOf('deploy/docker/Dockerfile')).toMatch(new RegExp(`^EXPOSE .*\\b${port}\\b`, 'm'))
    expect(textOf('deploy/kubernetes/penstock.yaml')).toContain(`containerPort: ${port}`)
  }
})

test('the image copies what the package holds', () => {
  const { files } = JSON.parse(textOf('package.json')) as { files: string[] }
  const copied = textOf('deploy/docker/Dockerfile')
  for (const file of files.filter((file) => !file.startsWith('!')))
    expect(copied, file).toContain(`/build/${file.replace(/\/$/, '')}`)
})

test('each alert has a runbook, and each runbook its alert', () => {
  const alerts = [...textOf('deploy/prometheus/rules.yml').matchAll(/alert: (\w+)/g)].map(([, name = '']) => name)
  const runbooks = [...textOf('docs/runbooks.md').matchAll(/^### (\w+)$/gm)].map(([, name]) => name)
  expect(runbooks.toSorted()).toEqual(alerts.toSorted())
  const links = [...textOf('deploy/prometheus/rules.yml').matchAll(/runbook_url: \S+\/docs\/runbooks\.html#(\w+)/g)]
  expect(links.map(([, anchor]) => anchor)).toEqual(alerts.map((name) => name.toLowerCase()))
})

test('chart, compose file and packages have the version of the package', () => {
  const { version } = JSON.parse(textOf('package.json')) as { version: string }
  expect(textOf('deploy/helm/Chart.yaml')).toContain(`\nversion: ${version}\nappVersion: "${version}"\n`)
  const images = [...textOf('deploy/docker/compose.yaml').matchAll(/image: (\S+):(\S+)/g)]
  expect(images.length).toBe(4)
  for (const [, name, tag = ''] of images) {
    if (name === 'penstock') expect(tag).toBe(version)
    // An image without a version is another one tomorrow.
    else expect(tag, name).toMatch(/^v?\d+\.\d+\.\d+$/)
  }
})

test('the unit of systemd runs what the packages install', () => {
  const unit = textOf('deploy/systemd/penstock.service')
  const build = textOf('deploy/packages/build.sh')
  expect(unit).toMatch(/^Type=notify$/m)
  expect(unit).toMatch(/^NotifyAccess=all$/m)
  expect(unit).toContain('ExecStart=/usr/bin/penstock start')
  for (const file of ['penstock.service', 'sysusers.conf', 'tmpfiles.conf', 'penstock.env', 'sysctl.conf'])
    expect(build).toContain(`deploy/systemd/${file}`)
})
