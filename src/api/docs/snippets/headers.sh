curl -s -o /dev/null -D - "$BASE_URL/api/profile/" \
  -H "x-api-key: $API_KEY" \
  -H "x-platform-organization-id: $ORGANIZATION_ID" |
  grep -iE '^(deprecation|sunset|link):'
