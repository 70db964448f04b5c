// Table of the security settings: users, rights, keys, certificates. Included in settings-table.ts.

import type { SettingsTable } from './setting-row.js'

export const securitySettings = {
  'http.user': {
    reload: true,
    type: 'text',
    initial: '',
    description: 'With `http.password`: requests need credentials; this user has all rights.',
  },
  'http.password': { reload: true, type: 'secret', initial: '', description: 'Password of that user.' },
  'http.auth.required': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    description: 'Require credentials even without `http.user`: those of users created by SQL.',
  },
  'http.health.check.authentication.required': {
    reload: true,
    type: 'boolean',
    initial: 'true',
    description: 'Require credentials for `/` and `/ping`, too, where requests need credentials.',
  },
  'http.host.names': {
    reload: true,
    type: 'list',
    initial: '',
    description:
      'Where no credentials are asked for: names by which the server may be called, besides addresses and local names, or `*` for any. Empty: any, but only local ones where it listens on the own machine alone. Pages of other sites cannot get in by a name of their own then.',
  },
  'http.security.readonly': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    description: "Reject all changes over HTTP, whatever the user's rights.",
  },
  'http.security.enabled': {
    type: 'boolean',
    initial: 'false',
    description: 'Serve HTTPS instead of HTTP.',
  },
  'http.security.keystore.path': {
    type: 'text',
    initial: '',
    description:
      'Certificate and key: PEM (one file, `cert,key`, or a folder), PKCS12 or JKS. Changed files are reloaded at once. A relative path is below the root folder.',
  },
  'http.security.keystore.password': { type: 'secret', initial: '', description: 'Password of that key store.' },
  'http.cors.enabled': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    description: 'Enable CORS: allow pages of other sites to use this server.',
  },
  'http.cors.allow.origin': {
    reload: true,
    type: 'text',
    initial: '',
    description: 'Allowed origins such as `https://app.example`, separated by commas; `*` for all.',
  },
  'http.min.security.enabled': {
    type: 'boolean',
    initial: 'false',
    description: 'Serve health checks over HTTPS.',
  },
  'http.min.security.keystore.path': {
    type: 'text',
    initial: '',
    description:
      'Certificate and key: PEM (one file, `cert,key`, or a folder), PKCS12 or JKS. Changed files are reloaded at once. A relative path is below the root folder.',
  },
  'http.min.security.keystore.password': { type: 'secret', initial: '', description: 'Password of that key store.' },
  'line.tcp.auth.db.path': {
    type: 'text',
    initial: '',
    description:
      'File of keys, `<key id> ec-p-256-sha256 <x> <y>` a line: senders must then authenticate with one of them or with the key of a user. A relative path is below the root folder.',
  },
  'line.tcp.auth.required': {
    reload: true,
    type: 'choice',
    initial: 'auto',
    choices: ['auto', 'true', 'false'],
    description:
      'Require senders to authenticate with the key of a user, even without such a file. `auto`: where HTTP wants credentials or `pg.password` is not the default one; where HTTP and the wire protocol are read-only, nobody may send.',
  },
  'line.tcp.security.enabled': {
    type: 'boolean',
    initial: 'false',
    description: 'Accept line protocol over TLS instead of plain TCP.',
  },
  'line.tcp.security.keystore.path': {
    type: 'text',
    initial: '',
    description:
      'Certificate and key: PEM (one file, `cert,key`, or a folder), PKCS12 or JKS. Changed files are reloaded at once. A relative path is below the root folder.',
  },
  'line.tcp.security.keystore.password': { type: 'secret', initial: '', description: 'Password of that key store.' },
  'pg.user': { reload: true, type: 'text', initial: 'admin', description: 'User of the PostgreSQL wire protocol.' },
  'pg.password': { reload: true, type: 'secret', initial: 'quest', description: 'Password of that user.' },
  'pg.designated.timestamp': {
    type: 'choice',
    initial: 'declared',
    choices: ['declared', 'first'],
    description:
      'Of tables created over the PostgreSQL wire protocol: the column that the statement names, or with `first` the first NOT NULL TIMESTAMP column where it names none (partitioned by day). For sinks that create tables themselves.',
  },
  'pg.auth.method': {
    type: 'choice',
    initial: 'cleartext',
    choices: ['cleartext', 'md5', 'scram-sha-256'],
    description:
      'Password authentication of the PostgreSQL wire protocol. `md5` works only for users of this configuration.',
  },
  'pg.readonly.user.enabled': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    description: 'Enable a second, read-only user.',
  },
  'pg.readonly.user': { reload: true, type: 'text', initial: 'user', description: 'Name of the read-only user.' },
  'pg.readonly.password': {
    reload: true,
    type: 'secret',
    initial: 'quest',
    description: 'Password of the read-only user.',
  },
  'pg.security.readonly': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    description: "Reject all changes over the PostgreSQL wire protocol, whatever the user's rights.",
  },
  'pg.security.enabled': {
    type: 'boolean',
    initial: 'false',
    description: 'Offer TLS to clients that request it.',
  },
  'pg.security.keystore.path': {
    type: 'text',
    initial: '',
    description:
      'Certificate and key: PEM (one file, `cert,key`, or a folder), PKCS12 or JKS. Changed files are reloaded at once. A relative path is below the root folder.',
  },
  'pg.security.keystore.password': { type: 'secret', initial: '', description: 'Password of that key store.' },
  'pg.security.required': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    description: 'Reject clients that do not use TLS.',
  },
  'security.readonly': {
    reload: true,
    type: 'boolean',
    initial: 'false',
    description:
      'Reject all changes over HTTP, the PostgreSQL wire protocol and line protocol. Kafka connectors pause.',
  },
  'security.strict': {
    type: 'boolean',
    initial: 'false',
    description: 'Refuse to start if other machines could connect without credentials or with default ones.',
  },
} as const satisfies SettingsTable
