/** What the schema of the chart's values takes over from that of the configuration file: the gateway's callers, credentials, routes and limits. */

interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

/** A Secret in the place of a credential's directory. */
const SECRET = {
  type: 'object',
  properties: {
    name: { $ref: '#/definitions/requiredName', description: "A Secret of the release's namespace." },
    keys: {
      type: 'object',
      propertyNames: { pattern: '^[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}$' },
      additionalProperties: { type: 'string', pattern: '^[-._a-zA-Z0-9]+$', maxLength: 253 },
      description: 'Which key of the Secret holds each file; all keys, by their own names, if absent.',
    },
  },
  required: ['name'],
  additionalProperties: false,
  description: 'Mounted as the directory of the credential.',
};

/**
 * @param schema JSON of the values' schema.
 * @param file the schema of the configuration file, described.
 * @returns the first, with what it takes over from the second renewed.
 */
export function takeOverGatewaySettings(schema: string, file: Schema): string {
  const values = JSON.parse(schema) as { definitions: Record<string, unknown> };
  const { credentials, routes, limits, gateway } = file.properties ?? {};
  const { output: _, ...settings } = credentials?.items?.properties ?? {};
  const taken = {
    gatewayCallers: gateway?.properties?.['callers'],
    gatewayCredentials: {
      ...credentials,
      items: { ...credentials?.items, properties: { ...settings, secret: SECRET } },
    },
    gatewayRoutes: routes,
    gatewayLimits: limits,
  };
  for (const [name, definition] of Object.entries(taken)) {
    if (definition === undefined) throw new Error(`the configuration file has nothing for ${name}`);
    const { description: ofTheFile, ...rest } = definition;
    values.definitions[name] = withoutLookaheads(rest);
  }
  return `${JSON.stringify(values, null, 2)}\n`;
}

/** Helm's expressions are Go's, which look at nothing ahead: what these refuse the program refuses. */
function withoutLookaheads(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutLookaheads);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, inner]) => !(key === 'pattern' && typeof inner === 'string' && inner.includes('(?!')))
      .map(([key, inner]) => [key, withoutLookaheads(inner)]),
  );
}
