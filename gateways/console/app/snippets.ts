// Sample programs for the start page that send one row to this server, in several languages. They use only the standard
// library of each language, so they run without installing anything. Exceptions: R (package httr), and Rust over TLS.

export interface Snippet {
  readonly language: string
  readonly code: string
}

const row = 'weather,city=Oslo temperature=3.5'

/** `url`: the server's address, such as `http://127.0.0.1:9000`. */
export function snippetsFor(url: string): Snippet[] {
  return [
    ...scripts(url),
    ...compiled(url),
    { language: 'SQL', code: `INSERT INTO weather (city, temperature, timestamp) VALUES ('Oslo', 3.5, now());` },
  ]
}

function scripts(url: string): Snippet[] {
  return [
    { language: 'Shell', code: `curl -sS '${url}/write' --data-binary '${row}'` },
    {
      language: 'Python',
      code: `from urllib.request import urlopen

urlopen('${url}/write', data=b'${row}')`,
    },
    {
      language: 'JavaScript',
      code: `const response = await fetch('${url}/write', { method: 'POST', body: '${row}' })
if (!response.ok) throw new Error(await response.text())`,
    },
    {
      language: 'PHP',
      code: `<?php
$options = ['http' => ['method' => 'POST', 'header' => 'Content-Type: text/plain', 'content' => '${row}']];
file_get_contents('${url}/write', false, stream_context_create($options));`,
    },
    {
      language: 'R',
      code: `library(httr)
POST("${url}/write", body = "${row}")`,
    },
  ]
}

function compiled(url: string): Snippet[] {
  const { hostname, port } = new URL(url)
  const secured = url.startsWith('https')
  return [
    {
      language: 'Java',
      code: `import java.net.URI;
import java.net.http.*;

public class SendRow {
    public static void main(String[] args) throws Exception {
        var request = HttpRequest.newBuilder(URI.create("${url}/write"))
            .POST(HttpRequest.BodyPublishers.ofString("${row}")).build();
        var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        System.out.println(response.statusCode() + " " + response.body());
    }
}`,
    },
    {
      language: 'Go',
      code: `package main

import (
	"fmt"
	"net/http"
	"strings"
)

func main() {
	response, err := http.Post("${url}/write", "text/plain", strings.NewReader("${row}"))
	if err != nil {
		panic(err)
	}
	fmt.Println(response.Status)
}`,
    },
    {
      language: 'Rust',
      code: secured
        ? `// Over TLS, use a crate such as reqwest or ureq: POST ${url}/write`
        : rustCode(hostname, port === '' ? '80' : port),
    },
    {
      language: 'C#',
      code: `using var client = new HttpClient();
var response = await client.PostAsync("${url}/write", new StringContent("${row}"));
response.EnsureSuccessStatusCode();`,
    },
  ]
}

function rustCode(host: string, port: string): string {
  return `use std::io::{Read, Write};
use std::net::TcpStream;

fn main() -> std::io::Result<()> {
    let row = "${row}";
    let mut stream = TcpStream::connect("${host}:${port}")?;
    write!(
        stream,
        "POST /write HTTP/1.1\\r\\nHost: ${host}\\r\\nConnection: close\\r\\nContent-Length: {}\\r\\n\\r\\n{}",
        row.len(),
        row
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    println!("{}", answer.lines().next().unwrap_or(""));
    Ok(())
}`
}
