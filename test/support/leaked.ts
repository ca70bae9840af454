/** What was printed, searched for what must not be in it. */

/** A JWT begins so: access tokens, assertions, attestations, also those that nobody has kept. */
const JWT = /eyJ[\w-]{8}/;

/** In PEM, or a member of a JWK that is private in each kind of key. */
const PRIVATE_KEY = /PRIVATE KEY-|"d":"[\w-]{20}/;

/**
 * Those of `secrets` that stand in the text: line by line, as they are, as in JSON, in a URL or in Base64. Told by their beginning
 * alone, so that the failure of a test prints none whole. Any JWT and private key counts.
 */
export function leakedIn(text: string, secrets: Iterable<string>): string[] {
  const lines = [...new Set([...secrets].flatMap((secret) => secret.split('\n')))].filter(
    (line) => line !== '',
  );
  const found = lines.filter((line) => formsOf(line).some((form) => text.includes(form)));
  return [
    ...found.map((line) => `${line.slice(0, 4)}…`),
    ...(JWT.test(text) ? ['a JWT'] : []),
    ...(PRIVATE_KEY.test(text) ? ['a private key'] : []),
  ];
}

function formsOf(line: string): string[] {
  const base64 = Buffer.from(line).toString('base64').replace(/=+$/, '');
  return [line, JSON.stringify(line).slice(1, -1), encodeURIComponent(line), base64];
}
