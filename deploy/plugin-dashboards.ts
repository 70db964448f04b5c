// Dashboards for the QuestDB plug-in of Grafana, made from those for Grafana's own PostgreSQL data source: the same panels,
// with targets as the plug-in stores them and with its macros.

const postgres = 'grafana-postgresql-datasource'
const plugin = 'questdb-questdb-datasource'
/** `format` of a target of the plug-in. */
const formats = new Map([
  ['time_series', 0],
  ['table', 1],
])

/** The dashboards of deploy/grafana that ask over the PostgreSQL wire. */
export const pluginDashboards = ['rooms', 'activity']

interface Source {
  readonly type: string
}

interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly tags: readonly string[]
  readonly templating: {
    readonly list: readonly { readonly type: string; readonly query: string; readonly datasource?: Source }[]
  }
  readonly panels: readonly {
    readonly datasource: Source
    readonly targets: readonly {
      readonly refId: string
      readonly datasource: Source
      readonly format: string
      readonly rawSql: string
    }[]
  }[]
}

/** The text of a dashboard for the plug-in, from the text of the dashboard for the PostgreSQL data source. */
export function pluginDashboard(text: string): string {
  const dashboard: Dashboard = JSON.parse(text)
  const { uid, title, templating, panels } = dashboard
  const changed = {
    ...dashboard,
    uid: `${uid}-questdb`,
    title: `${title}, by the QuestDB plug-in`,
    templating: {
      ...templating,
      list: templating.list.map((variable) => ({
        ...variable,
        ...(variable.type === 'datasource' ? { query: plugin } : {}),
        ...(variable.datasource === undefined ? {} : { datasource: ofPlugin(variable.datasource) }),
      })),
    },
    panels: panels.map((panel) => ({
      ...panel,
      datasource: ofPlugin(panel.datasource),
      targets: panel.targets.map(({ refId, datasource, format, rawSql }) => ({
        refId,
        datasource: ofPlugin(datasource),
        queryType: 'sql',
        format: formatOf(format),
        selectedFormat: formatOf(format),
        // Grafana writes $__interval with units that QuestDB does not know; the macro of the plug-in suits both.
        rawSql: rawSql.replaceAll('$__interval', '$__sampleByInterval'),
      })),
    })),
  }
  return JSON.stringify(changed, null, 2)
}

function ofPlugin(source: Source): Source {
  if (source.type !== postgres) throw new Error(`not a target of the PostgreSQL data source [type=${source.type}]`)
  return { ...source, type: plugin }
}

function formatOf(format: string): number {
  const number = formats.get(format)
  if (number === undefined) throw new Error(`the plug-in does not have this format [format=${format}]`)
  return number
}
