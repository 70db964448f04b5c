"""Clients that send 100 MB and are refused read why: http.client, urllib and curl, which differ in when they read.

usage: refused_uploads.py URL     the server's user is root, with the password pw"""

import base64, http.client, subprocess, sys, tempfile, urllib.error, urllib.request

url = sys.argv[1]
host, port = url.split('//')[1].split(':')
auth = {'Authorization': 'Basic ' + base64.b64encode(b'root:pw').decode()}
body = b'x' * 100_000_000
as_json = {'Content-Type': 'application/json'}
failures = 0


def check(client, name, status, wanted):
    global failures
    right = status == wanted
    failures += not right
    print('ok    ' if right else 'FAILED', client, name, status)


def by_http_client(name, path, headers, wanted, times=1, hosts=('x',)):
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    try:
        connection.putrequest('POST', path, skip_host=True)
        for value in hosts:
            connection.putheader('Host', value)
        for key, value in headers.items():
            connection.putheader(key, value)
        connection.putheader('Content-Length', str(len(body) * times))
        connection.endheaders()
        for _ in range(times):
            connection.send(body)
        answer = connection.getresponse()
        answer.read()
        check('http.client', name, answer.status, wanted)
    except OSError as error:
        check('http.client', name, repr(error), wanted)
    finally:
        connection.close()


def by_urllib(name, path, headers, wanted):
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, body, headers, method='POST')) as answer:
            check('urllib', name, answer.status, wanted)
    except urllib.error.HTTPError as error:
        error.read()
        check('urllib', name, error.code, wanted)
    except OSError as error:
        check('urllib', name, repr(error), wanted)


def by_curl(name, path, arguments, wanted, file):
    command = ['curl', '-s', '-m', '60', '-o', '/dev/null', '-w', '%{http_code}', '--data-binary', '@' + file]
    done = subprocess.run([*command, *arguments, url + path], capture_output=True, text=True)
    check('curl', name, f'{done.stdout} {done.returncode}', f'{wanted} 0')


by_http_client('no credentials', '/write', {}, 403)
by_http_client('too large', '/write', auth, 413, times=2)
by_http_client('too large, a statement', '/exec', {**auth, **as_json}, 413)
by_http_client('two hosts', '/write', auth, 400, hosts=('x', 'y'))
by_http_client('a head that is none', '/write', {**auth, 'Transfer-Encoding': 'gzip'}, 400)
by_urllib('no credentials', '/write', {}, 403)
by_urllib('too large, a statement', '/exec', {**auth, **as_json}, 413)
with tempfile.NamedTemporaryFile() as file:
    file.write(body)
    file.flush()
    by_curl('no credentials', '/write', [], 403, file.name)
    by_curl('no credentials, without waiting', '/write', ['-H', 'Expect:'], 403, file.name)
    by_curl('a head that is none', '/write', ['-u', 'root:pw', '-H', 'Transfer-Encoding: gzip'], 400, file.name)
sys.exit(failures > 0)
