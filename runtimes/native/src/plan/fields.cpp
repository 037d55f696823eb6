#include "plan/fields.hpp"

#include "error.hpp"

#include <algorithm>
#include <cmath>

namespace parapipe {

Field Field::operator[](const std::string &name) const {
    if (auto found = find(name)) {
        return *found;
    }
    refuse("lacks the field '" + name + "'");
}

std::optional<Field> Field::find(const std::string &name) const {
    if (!value_->is_object()) {
        refuse("should be an object");
    }
    const auto found = value_->find(name);
    if (found == value_->end()) {
        return std::nullopt;
    }
    return Field(*found, place_ + (place_.empty() ? "" : ".") + name);
}

void Field::allow(std::initializer_list<const char *> names) const {
    for (const auto &[name, field] : members()) {
        const bool known = std::any_of(names.begin(), names.end(),
                                       [&name = name](const char *other) { return name == other; });
        if (!known) {
            field.refuse("is not known in this version");
        }
    }
}

std::vector<Field> Field::entries() const {
    if (!value_->is_array()) {
        refuse("should be an array");
    }
    std::vector<Field> entries;
    entries.reserve(value_->size());
    for (std::size_t i = 0; i < value_->size(); ++i) {
        entries.emplace_back((*value_)[i], place_ + "[" + std::to_string(i) + "]");
    }
    return entries;
}

std::vector<std::pair<std::string, Field>> Field::members() const {
    if (!value_->is_object()) {
        refuse("should be an object");
    }
    std::vector<std::pair<std::string, Field>> members;
    for (const auto &item : value_->items()) {
        members.emplace_back(item.key(), Field(item.value(), place_ + (place_.empty() ? "" : ".") + item.key()));
    }
    return members;
}

std::string Field::text() const {
    if (!value_->is_string()) {
        refuse("should be a text");
    }
    return value_->get<std::string>();
}

std::string Field::name() const {
    auto name = text();
    if (name.empty()) {
        refuse("should not be empty");
    }
    return name;
}

std::int64_t Field::integer(std::int64_t least, std::int64_t most) const {
    const bool fits = value_->is_number_unsigned()
                          ? value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX)
                          : value_->is_number_integer();
    if (fits) {
        const auto integer = value_->get<std::int64_t>();
        if (least <= integer && integer <= most) {
            return integer;
        }
    }
    refuse("should be an integer from " + std::to_string(least) + " to " + std::to_string(most));
}

double Field::number() const {
    if (value_->is_number() && std::isfinite(value_->get<double>())) {
        return value_->get<double>();
    }
    refuse("should be a finite number");
}

void Field::refuse(const std::string &what) const {
    throw Error("plan.json: " + (place_.empty() ? "the document" : place_) + " " + what);
}

}  // namespace parapipe
