// Definitions of the views of pg_catalog as in PostgreSQL 15, as text, which catalog.ts parses. Format: a line
// `name oid kind` (r: table, v: view), then indented lines with the columns and their types.

export const catalogViews = `
pg_available_extension_versions 12085 v
  name name, version text, installed bool, superuser bool, trusted bool, relocatable bool, schema name, requires
  _name, comment text
pg_available_extensions 12081 v
  name name, default_version text, installed_version text, comment text
pg_backend_memory_contexts 12138 v
  name text, ident text, parent text, level int4, total_bytes int8, total_nblocks int8, free_bytes int8, free_chunks
  int8, used_bytes int8
pg_config 12130 v
  name text, setting text
pg_cursors 12077 v
  name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool, creation_time timestamptz
pg_file_settings 12110 v
  sourcefile text, sourceline int4, seqno int4, name text, setting text, applied bool, error text
pg_group 12010 v
  groname name, grosysid oid, grolist _oid
pg_hba_file_rules 12114 v
  line_number int4, type text, database _text, user_name _text, address text, netmask text, auth_method text,
  options _text, error text
pg_ident_file_mappings 12118 v
  line_number int4, map_name text, sys_name text, pg_username text, error text
pg_indexes 12043 v
  schemaname name, tablename name, indexname name, tablespace name, indexdef text
pg_locks 12073 v
  locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text, transactionid xid, classid oid,
  objid oid, objsubid int2, virtualtransaction text, pid int4, mode text, granted bool, fastpath bool, waitstart
  timestamptz
pg_matviews 12038 v
  schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes bool, ispopulated bool,
  definition text
pg_policies 12018 v
  schemaname name, tablename name, policyname name, permissive text, roles _name, cmd text, qual text, with_check
  text
pg_prepared_statements 12095 v
  name text, statement text, prepare_time timestamptz, parameter_types _regtype, from_sql bool, generic_plans int8,
  custom_plans int8
pg_prepared_xacts 12090 v
  transaction xid, gid text, prepared timestamptz, owner name, database name
pg_publication_tables 12068 v
  pubname name, schemaname name, tablename name, attnames _name, rowfilter text
pg_replication_origin_status 12332 v
  local_id oid, external_id text, remote_lsn pg_lsn, local_lsn pg_lsn
pg_replication_slots 12257 v
  slot_name name, plugin name, slot_type text, datoid oid, database name, temporary bool, active bool, active_pid
  int4, xmin xid, catalog_xmin xid, restart_lsn pg_lsn, confirmed_flush_lsn pg_lsn, wal_status text, safe_wal_size
  int8, two_phase bool
pg_roles 12000 v
  rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool,
  rolreplication bool, rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz, rolbypassrls bool, rolconfig
  _text, oid oid
pg_rules 12023 v
  schemaname name, tablename name, rulename name, definition text
pg_seclabels 12099 v
  objoid oid, classoid oid, objsubid int4, objtype text, objnamespace oid, objname text, provider text, label text
pg_sequences 12048 v
  schemaname name, sequencename name, sequenceowner name, data_type regtype, start_value int8, min_value int8,
  max_value int8, increment_by int8, cycle bool, cache_size int8, last_value int8
pg_settings 12104 v
  name text, setting text, unit text, category text, short_desc text, extra_desc text, context text, vartype text,
  source text, min_val text, max_val text, enumvals _text, boot_val text, reset_val text, sourcefile text,
  sourceline int4, pending_restart bool
pg_shadow 12005 v
  usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool, passwd text,
  valuntil timestamptz, useconfig _text
pg_shmem_allocations 12134 v
  name text, off int8, size int8, allocated_size int8
pg_stat_activity 12222 v
  datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename name, application_name text, client_addr
  inet, client_hostname text, client_port int4, backend_start timestamptz, xact_start timestamptz, query_start
  timestamptz, state_change timestamptz, wait_event_type text, wait_event text, state text, backend_xid xid,
  backend_xmin xid, query_id int8, query text, backend_type text
pg_stat_all_indexes 12183 v
  relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8, idx_tup_read int8,
  idx_tup_fetch int8
pg_stat_all_tables 12142 v
  relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch int8,
  n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8, n_live_tup int8, n_dead_tup int8,
  n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz, last_autovacuum timestamptz,
  last_analyze timestamptz, last_autoanalyze timestamptz, vacuum_count int8, autovacuum_count int8, analyze_count
  int8, autoanalyze_count int8
pg_stat_archiver 12285 v
  archived_count int8, last_archived_wal text, last_archived_time timestamptz, failed_count int8, last_failed_wal
  text, last_failed_time timestamptz, stats_reset timestamptz
pg_stat_bgwriter 12289 v
  checkpoints_timed int8, checkpoints_req int8, checkpoint_write_time float8, checkpoint_sync_time float8,
  buffers_checkpoint int8, buffers_clean int8, maxwritten_clean int8, buffers_backend int8, buffers_backend_fsync
  int8, buffers_alloc int8, stats_reset timestamptz
pg_stat_database 12266 v
  datid oid, datname name, numbackends int4, xact_commit int8, xact_rollback int8, blks_read int8, blks_hit int8,
  tup_returned int8, tup_fetched int8, tup_inserted int8, tup_updated int8, tup_deleted int8, conflicts int8,
  temp_files int8, temp_bytes int8, deadlocks int8, checksum_failures int8, checksum_last_failure timestamptz,
  blk_read_time float8, blk_write_time float8, session_time float8, active_time float8, idle_in_transaction_time
  float8, sessions int8, sessions_abandoned int8, sessions_fatal int8, sessions_killed int8, stats_reset timestamptz
pg_stat_database_conflicts 12271 v
  datid oid, datname name, confl_tablespace int8, confl_lock int8, confl_snapshot int8, confl_bufferpin int8,
  confl_deadlock int8
pg_stat_gssapi 12253 v
  pid int4, gss_authenticated bool, principal text, encrypted bool
pg_stat_progress_analyze 12297 v
  pid int4, datid oid, datname name, relid oid, phase text, sample_blks_total int8, sample_blks_scanned int8,
  ext_stats_total int8, ext_stats_computed int8, child_tables_total int8, child_tables_done int8,
  current_child_table_relid oid
pg_stat_progress_basebackup 12317 v
  pid int4, phase text, backup_total int8, backup_streamed int8, tablespaces_total int8, tablespaces_streamed int8
pg_stat_progress_cluster 12307 v
  pid int4, datid oid, datname name, relid oid, command text, phase text, cluster_index_relid oid,
  heap_tuples_scanned int8, heap_tuples_written int8, heap_blks_total int8, heap_blks_scanned int8,
  index_rebuild_count int8
pg_stat_progress_copy 12322 v
  pid int4, datid oid, datname name, relid oid, command text, type text, bytes_processed int8, bytes_total int8,
  tuples_processed int8, tuples_excluded int8
pg_stat_progress_create_index 12312 v
  pid int4, datid oid, datname name, relid oid, index_relid oid, command text, phase text, lockers_total int8,
  lockers_done int8, current_locker_pid int8, blocks_total int8, blocks_done int8, tuples_total int8, tuples_done
  int8, partitions_total int8, partitions_done int8
pg_stat_progress_vacuum 12302 v
  pid int4, datid oid, datname name, relid oid, phase text, heap_blks_total int8, heap_blks_scanned int8,
  heap_blks_vacuumed int8, index_vacuum_count int8, max_dead_tuples int8, num_dead_tuples int8
pg_stat_recovery_prefetch 12240 v
  stats_reset timestamptz, prefetch int8, hit int8, skip_init int8, skip_new int8, skip_fpw int8, skip_rep int8,
  wal_distance int4, block_distance int4, io_depth int4
pg_stat_replication 12227 v
  pid int4, usesysid oid, usename name, application_name text, client_addr inet, client_hostname text, client_port
  int4, backend_start timestamptz, backend_xmin xid, state text, sent_lsn pg_lsn, write_lsn pg_lsn, flush_lsn
  pg_lsn, replay_lsn pg_lsn, write_lag interval, flush_lag interval, replay_lag interval, sync_priority int4,
  sync_state text, reply_time timestamptz
pg_stat_replication_slots 12262 v
  slot_name text, spill_txns int8, spill_count int8, spill_bytes int8, stream_txns int8, stream_count int8,
  stream_bytes int8, total_txns int8, total_bytes int8, stats_reset timestamptz
pg_stat_slru 12232 v
  name text, blks_zeroed int8, blks_hit int8, blks_read int8, blks_written int8, blks_exists int8, flushes int8,
  truncates int8, stats_reset timestamptz
pg_stat_ssl 12249 v
  pid int4, ssl bool, version text, cipher text, bits int4, client_dn text, client_serial numeric, issuer_dn text
pg_stat_subscription 12244 v
  subid oid, subname name, pid int4, relid oid, received_lsn pg_lsn, last_msg_send_time timestamptz,
  last_msg_receipt_time timestamptz, latest_end_lsn pg_lsn, latest_end_time timestamptz
pg_stat_subscription_stats 12336 v
  subid oid, subname name, apply_error_count int8, sync_error_count int8, stats_reset timestamptz
pg_stat_sys_indexes 12188 v
  relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8, idx_tup_read int8,
  idx_tup_fetch int8
pg_stat_sys_tables 12152 v
  relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch int8,
  n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8, n_live_tup int8, n_dead_tup int8,
  n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz, last_autovacuum timestamptz,
  last_analyze timestamptz, last_autoanalyze timestamptz, vacuum_count int8, autovacuum_count int8, analyze_count
  int8, autoanalyze_count int8
pg_stat_user_functions 12275 v
  funcid oid, schemaname name, funcname name, calls int8, total_time float8, self_time float8
pg_stat_user_indexes 12192 v
  relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8, idx_tup_read int8,
  idx_tup_fetch int8
pg_stat_user_tables 12161 v
  relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch int8,
  n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8, n_live_tup int8, n_dead_tup int8,
  n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz, last_autovacuum timestamptz,
  last_analyze timestamptz, last_autoanalyze timestamptz, vacuum_count int8, autovacuum_count int8, analyze_count
  int8, autoanalyze_count int8
pg_stat_wal 12293 v
  wal_records int8, wal_fpi int8, wal_bytes numeric, wal_buffers_full int8, wal_write int8, wal_sync int8,
  wal_write_time float8, wal_sync_time float8, stats_reset timestamptz
pg_stat_wal_receiver 12236 v
  pid int4, status text, receive_start_lsn pg_lsn, receive_start_tli int4, written_lsn pg_lsn, flushed_lsn pg_lsn,
  received_tli int4, last_msg_send_time timestamptz, last_msg_receipt_time timestamptz, latest_end_lsn pg_lsn,
  latest_end_time timestamptz, slot_name text, sender_host text, sender_port int4, conninfo text
pg_stat_xact_all_tables 12147 v
  relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch int8,
  n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8
pg_stat_xact_sys_tables 12157 v
  relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch int8,
  n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8
pg_stat_xact_user_functions 12280 v
  funcid oid, schemaname name, funcname name, calls int8, total_time float8, self_time float8
pg_stat_xact_user_tables 12166 v
  relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch int8,
  n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8
pg_statio_all_indexes 12196 v
  relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_blks_read int8, idx_blks_hit int8
pg_statio_all_sequences 12209 v
  relid oid, schemaname name, relname name, blks_read int8, blks_hit int8
pg_statio_all_tables 12170 v
  relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read int8,
  idx_blks_hit int8, toast_blks_read int8, toast_blks_hit int8, tidx_blks_read int8, tidx_blks_hit int8
pg_statio_sys_indexes 12201 v
  relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_blks_read int8, idx_blks_hit int8
pg_statio_sys_sequences 12214 v
  relid oid, schemaname name, relname name, blks_read int8, blks_hit int8
pg_statio_sys_tables 12175 v
  relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read int8,
  idx_blks_hit int8, toast_blks_read int8, toast_blks_hit int8, tidx_blks_read int8, tidx_blks_hit int8
pg_statio_user_indexes 12205 v
  relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_blks_read int8, idx_blks_hit int8
pg_statio_user_sequences 12218 v
  relid oid, schemaname name, relname name, blks_read int8, blks_hit int8
pg_statio_user_tables 12179 v
  relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read int8,
  idx_blks_hit int8, toast_blks_read int8, toast_blks_hit int8, tidx_blks_read int8, tidx_blks_hit int8
pg_stats 12053 v
  schemaname name, tablename name, attname name, inherited bool, null_frac float4, avg_width int4, n_distinct
  float4, most_common_vals anyarray, most_common_freqs _float4, histogram_bounds anyarray, correlation float4,
  most_common_elems anyarray, most_common_elem_freqs _float4, elem_count_histogram _float4
pg_stats_ext 12058 v
  schemaname name, tablename name, statistics_schemaname name, statistics_name name, statistics_owner name, attnames
  _name, exprs _text, kinds _char, inherited bool, n_distinct pg_ndistinct, dependencies pg_dependencies,
  most_common_vals _text, most_common_val_nulls _bool, most_common_freqs _float8, most_common_base_freqs _float8
pg_stats_ext_exprs 12063 v
  schemaname name, tablename name, statistics_schemaname name, statistics_name name, statistics_owner name, expr
  text, inherited bool, null_frac float4, avg_width int4, n_distinct float4, most_common_vals anyarray,
  most_common_freqs _float4, histogram_bounds anyarray, correlation float4, most_common_elems anyarray,
  most_common_elem_freqs _float4, elem_count_histogram _float4
pg_tables 12033 v
  schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool, hasrules bool, hastriggers
  bool, rowsecurity bool
pg_timezone_abbrevs 12122 v
  abbrev text, utc_offset interval, is_dst bool
pg_timezone_names 12126 v
  name text, abbrev text, utc_offset interval, is_dst bool
pg_user 12014 v
  usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool, passwd text,
  valuntil timestamptz, useconfig _text
pg_user_mappings 12327 v
  umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions _text
pg_views 12028 v
  schemaname name, viewname name, viewowner name, definition text
`
