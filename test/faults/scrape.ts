import type { ListenAddress } from '../../src/platform/net/address.ts';

/** What `/metrics` of a sidecar says. */
export class Scrape {
  readonly #lines: readonly string[];

  private constructor(text: string) {
    this.#lines = text.split('\n').filter((line) => line.startsWith('token_sidecar_'));
  }

  static async of({ host, port }: ListenAddress): Promise<Scrape> {
    const response = await fetch(`http://${host}:${port}/metrics`);
    return new Scrape(await response.text());
  }

  /** Sum of the samples of `token_sidecar_<name>` that carry the labels; 0 when there is none. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
    const beginnings = ['{', ' '].map((next) => `token_sidecar_${name}${next}`);
    return this.#lines
      .filter((line) => beginnings.some((beginning) => line.startsWith(beginning)))
      .filter((line) => wanted.every((pair) => line.includes(pair)))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  }
}
