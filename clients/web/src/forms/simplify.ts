/**
 * JSON Schemas as Pydantic and others write them, in the few forms that the fields of a form know.
 *
 * A local reference is replaced by its target, a choice between one schema and null by that schema, and `const` by an
 * `enum` of one value. A choice between constants, as MCP servers write titled options, becomes an `enum` with
 * `enumNames`. A schema that has no simpler form stays as it is.
 */

export type Schema = Record<string, unknown>;

export interface Simplified {
  schema: Schema;
  isNullable: boolean;
}

/** References that lead to other references, until a circle of them is assumed. */
const MAX_REFERENCES = 16;

export function simplify(schema: Schema, root: Schema, references = 0): Simplified {
  const { $ref, allOf, anyOf, oneOf, ...rest } = schema;
  if (typeof $ref === "string" && references < MAX_REFERENCES) {
    return simplify({ ...target($ref, root), ...rest }, root, references + 1);
  }
  if (Array.isArray(allOf) && allOf.length === 1 && isSchema(allOf[0])) {
    return simplify({ ...allOf[0], ...rest }, root, references + 1);
  }
  const alternatives = [anyOf, oneOf].find(Array.isArray);
  const others = alternatives?.filter((each) => !(isSchema(each) && each.type === "null"));
  if (others?.length === 1 && isSchema(others[0])) {
    const only = simplify({ ...others[0], ...rest }, root, references + 1);
    return { schema: only.schema, isNullable: only.isNullable || others.length < alternatives!.length };
  }
  if (others?.length && others.every(isConstant)) {
    const names = others.map(({ const: value, title }) => (typeof title === "string" ? title : value));
    const { schema: only } = withOneType({ ...rest, enum: others.map((each) => each.const), enumNames: names });
    return { schema: only, isNullable: others.length < alternatives!.length };
  }
  return withOneType(schema);
}

function withOneType(schema: Schema): Simplified {
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  const others = types.filter((type) => type !== "null");
  const type = others.length === 1 ? { type: others[0] as unknown } : {};
  const choices = schema.const === undefined ? {} : { enum: [schema.const] };
  return { schema: { ...schema, ...type, ...choices }, isNullable: others.length < types.length };
}

function isConstant(alternative: unknown): alternative is Schema {
  return isSchema(alternative) && alternative.const !== undefined;
}

/** Return the schema at a JSON pointer of the same document, and an empty one if there is none. */
function target(reference: string, root: Schema): Schema {
  if (!reference.startsWith("#")) return {};
  const names = reference.slice(1).split("/").slice(1);
  let place: unknown = root;
  for (const name of names)
    place = isSchema(place) ? place[name.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
  return isSchema(place) ? place : {};
}

export function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
