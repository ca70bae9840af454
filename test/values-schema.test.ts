import { expect, it } from 'vitest';
import { describeValuesSchema } from '../scripts/values-schema.ts';

const VALUES = '# Where pods may run.\ntolerations: []\n';

const schemaOf = (operator: object): string =>
  JSON.stringify({
    properties: { tolerations: { items: { $ref: '#/definitions/toleration' } } },
    definitions: { toleration: { properties: { operator } } },
  });

it('says of each value what values.yaml says of it', () => {
  const { properties } = JSON.parse(
    describeValuesSchema(schemaOf({ description: 'Equal or Exists.' }), VALUES),
  );
  expect(properties.tolerations).toMatchObject({ description: 'Where pods may run.', default: [] });
});

it('is refused where a key that values.yaml does not spell out is not described', () => {
  expect(() => describeValuesSchema(schemaOf({}), VALUES)).toThrow(
    'values.schema.json: #toleration.operator has no description',
  );
});
