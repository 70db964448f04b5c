// The types of pg_catalog in PostgreSQL 15. Drivers load them by name or oid when they connect. types.ts parses this
// text. Format: one line per type, with fields separated by blanks:
//
//   oid  name  length  flags  marks  delimiter  element  array  collation  input  output  receive  send  stem  SQL name
//
//   flags: typtype, typcategory, typalign, typstorage; marks: v passed by value, p preferred of its category
//   input .. send: oids of the functions; their names are the stem followed by `in`, `out`, `recv`, `send`
//
// Array types are not listed: their names are those of the elements with `_` in front.

export const typeRows = `
16 bool 1 bBcp vp , 0 1000 0 1242 1243 2436 2437 bool boolean
17 bytea -1 bUix -- , 0 1001 0 1244 31 2412 2413 bytea bytea
18 char 1 bZcp v- , 0 1002 0 1245 33 2434 2435 char "char"
19 name 64 bScp -- , 18 1003 950 34 35 2422 2423 name name
20 int8 8 bNdp v- , 0 1016 0 460 461 2408 2409 int8 bigint
21 int2 2 bNsp v- , 0 1005 0 38 39 2404 2405 int2 smallint
22 int2vector -1 bAip -- , 21 1006 0 40 41 2410 2411 int2vector int2vector
23 int4 4 bNip v- , 0 1007 0 42 43 2406 2407 int4 integer
24 regproc 4 bNip v- , 0 1008 0 44 45 2444 2445 regproc regproc
25 text -1 bSix -p , 0 1009 100 46 47 2414 2415 text text
26 oid 4 bNip vp , 0 1028 0 1798 1799 2418 2419 oid oid
27 tid 6 bUsp -- , 0 1010 0 48 49 2438 2439 tid tid
28 xid 4 bUip v- , 0 1011 0 50 51 2440 2441 xid xid
29 cid 4 bUip v- , 0 1012 0 52 53 2442 2443 cid cid
30 oidvector -1 bAip -- , 26 1013 0 54 55 2420 2421 oidvector oidvector
114 json -1 bUix -- , 0 199 0 321 322 323 324 json_ json
142 xml -1 bUix -- , 0 143 0 2893 2894 2898 2899 xml_ xml
194 pg_node_tree -1 bZix -- , 0 0 100 195 196 197 198 pg_node_tree_ pg_node_tree
600 point 16 bGdp -- , 701 1017 0 117 118 2428 2429 point_ point
601 lseg 32 bGdp -- , 600 1018 0 119 120 2480 2481 lseg_ lseg
602 path -1 bGdx -- , 0 1019 0 121 122 2482 2483 path_ path
603 box 32 bGdp -- ; 600 1020 0 123 124 2484 2485 box_ box
604 polygon -1 bGdx -- , 0 1027 0 347 348 2486 2487 poly_ polygon
628 line 24 bGdp -- , 701 629 0 1490 1491 2488 2489 line_ line
650 cidr -1 bIim -- , 0 651 0 1267 1427 2498 2499 cidr_ cidr
700 float4 4 bNip v- , 0 1021 0 200 201 2424 2425 float4 real
701 float8 8 bNdp vp , 0 1022 0 214 215 2426 2427 float8 double precision
705 unknown -2 pXcp -- , 0 0 0 109 110 2416 2417 unknown unknown
718 circle 24 bGdp -- , 0 719 0 1450 1451 2490 2491 circle_ circle
774 macaddr8 8 bUip -- , 0 775 0 4110 4111 3446 3447 macaddr8_ macaddr8
790 money 8 bNdp v- , 0 791 0 886 887 2492 2493 cash_ money
829 macaddr 6 bUip -- , 0 1040 0 436 437 2494 2495 macaddr_ macaddr
869 inet -1 bIim -p , 0 1041 0 910 911 2496 2497 inet_ inet
1033 aclitem 12 bUip -- , 0 1034 0 1031 1032 0 0 aclitem aclitem
1042 bpchar -1 bSix -- , 0 1014 100 1044 1045 2430 2431 bpchar character
1043 varchar -1 bSix -- , 0 1015 100 1046 1047 2432 2433 varchar character varying
1082 date 4 bDip v- , 0 1182 0 1084 1085 2468 2469 date_ date
1083 time 8 bDdp v- , 0 1183 0 1143 1144 2470 2471 time_ time without time zone
1114 timestamp 8 bDdp v- , 0 1115 0 1312 1313 2474 2475 timestamp_ timestamp without time zone
1184 timestamptz 8 bDdp vp , 0 1185 0 1150 1151 2476 2477 timestamptz_ timestamp with time zone
1186 interval 16 bTdp -p , 0 1187 0 1160 1161 2478 2479 interval_ interval
1266 timetz 12 bDdp -- , 0 1270 0 1350 1351 2472 2473 timetz_ time with time zone
1560 bit -1 bVix -- , 0 1561 0 1564 1565 2456 2457 bit_ bit
1562 varbit -1 bVix -p , 0 1563 0 1579 1580 2458 2459 varbit_ bit varying
1700 numeric -1 bNim -- , 0 1231 0 1701 1702 2460 2461 numeric_ numeric
1790 refcursor -1 bUix -- , 0 2201 0 46 47 2414 2415 text refcursor
2202 regprocedure 4 bNip v- , 0 2207 0 2212 2213 2446 2447 regprocedure regprocedure
2203 regoper 4 bNip v- , 0 2208 0 2214 2215 2448 2449 regoper regoper
2204 regoperator 4 bNip v- , 0 2209 0 2216 2217 2450 2451 regoperator regoperator
2205 regclass 4 bNip v- , 0 2210 0 2218 2219 2452 2453 regclass regclass
2206 regtype 4 bNip v- , 0 2211 0 2220 2221 2454 2455 regtype regtype
2249 record -1 pPdx -- , 0 2287 0 2290 2291 2402 2403 record_ record
2275 cstring -2 pPcp -- , 0 1263 0 2292 2293 2500 2501 cstring_ cstring
2276 any 4 pPip v- , 0 0 0 2294 2295 0 0 any_ "any"
2277 anyarray -1 pPdx -- , 0 0 0 2296 2297 2502 2503 anyarray_ anyarray
2278 void 4 pPip v- , 0 0 0 2298 2299 3120 3121 void_ void
2279 trigger 4 pPip v- , 0 0 0 2300 2301 0 0 trigger_ trigger
2281 internal 8 pPdp v- , 0 0 0 2304 2305 0 0 internal_ internal
2283 anyelement 4 pPip v- , 0 0 0 2312 2313 0 0 anyelement_ anyelement
2776 anynonarray 4 pPip v- , 0 0 0 2777 2778 0 0 anynonarray_ anynonarray
2950 uuid 16 bUcp -- , 0 2951 0 2952 2953 2961 2962 uuid_ uuid
2970 txid_snapshot -1 bUdx -- , 0 2949 0 2939 2940 2941 2942 txid_snapshot_ txid_snapshot
3220 pg_lsn 8 bUdp v- , 0 3221 0 3229 3230 3238 3239 pg_lsn_ pg_lsn
3361 pg_ndistinct -1 bZix -- , 0 0 100 3355 3356 3357 3358 pg_ndistinct_ pg_ndistinct
3402 pg_dependencies -1 bZix -- , 0 0 100 3404 3405 3406 3407 pg_dependencies_ pg_dependencies
3500 anyenum 4 pPip v- , 0 0 0 3504 3505 0 0 anyenum_ anyenum
3614 tsvector -1 bUix -- , 0 3643 0 3610 3611 3639 3638 tsvector tsvector
3615 tsquery -1 bUip -- , 0 3645 0 3612 3613 3641 3640 tsquery tsquery
3734 regconfig 4 bNip v- , 0 3735 0 3736 3737 3738 3739 regconfig regconfig
3769 regdictionary 4 bNip v- , 0 3770 0 3771 3772 3773 3774 regdictionary regdictionary
3802 jsonb -1 bUix -- , 0 3807 0 3806 3804 3805 3803 jsonb_ jsonb
3831 anyrange -1 pPdx -- , 0 0 0 3832 3833 0 0 anyrange_ anyrange
3838 event_trigger 4 pPip v- , 0 0 0 3594 3595 0 0 event_trigger_ event_trigger
3904 int4range -1 rRix -- , 0 3905 0 3834 3835 3836 3837 range_ int4range
3906 numrange -1 rRix -- , 0 3907 0 3834 3835 3836 3837 range_ numrange
3908 tsrange -1 rRdx -- , 0 3909 0 3834 3835 3836 3837 range_ tsrange
3910 tstzrange -1 rRdx -- , 0 3911 0 3834 3835 3836 3837 range_ tstzrange
3912 daterange -1 rRix -- , 0 3913 0 3834 3835 3836 3837 range_ daterange
3926 int8range -1 rRdx -- , 0 3927 0 3834 3835 3836 3837 range_ int8range
4072 jsonpath -1 bUix -- , 0 4073 0 4001 4003 4002 4004 jsonpath_ jsonpath
4089 regnamespace 4 bNip v- , 0 4090 0 4084 4085 4087 4088 regnamespace regnamespace
4096 regrole 4 bNip v- , 0 4097 0 4098 4092 4094 4095 regrole regrole
4191 regcollation 4 bNip v- , 0 4192 0 4193 4194 4196 4197 regcollation regcollation
4451 int4multirange -1 mRix -- , 0 6150 0 4231 4232 4233 4234 multirange_ int4multirange
4532 nummultirange -1 mRix -- , 0 6151 0 4231 4232 4233 4234 multirange_ nummultirange
4533 tsmultirange -1 mRdx -- , 0 6152 0 4231 4232 4233 4234 multirange_ tsmultirange
4534 tstzmultirange -1 mRdx -- , 0 6153 0 4231 4232 4233 4234 multirange_ tstzmultirange
4535 datemultirange -1 mRix -- , 0 6155 0 4231 4232 4233 4234 multirange_ datemultirange
4536 int8multirange -1 mRdx -- , 0 6157 0 4231 4232 4233 4234 multirange_ int8multirange
4537 anymultirange -1 pPdx -- , 0 0 0 4229 4230 0 0 anymultirange_ anymultirange
5017 pg_mcv_list -1 bZix -- , 0 0 100 5018 5019 5020 5021 pg_mcv_list_ pg_mcv_list
5038 pg_snapshot -1 bUdx -- , 0 5039 0 5055 5056 5057 5058 pg_snapshot_ pg_snapshot
5069 xid8 8 bUdp v- , 0 271 0 5070 5081 5082 5083 xid8 xid8
`
